import type { MarkedToken, Token, Tokens } from 'marked';
import { type ComponentChildren, Fragment, type JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import { decodeEntities, MarkdownReader } from '../../markdown/markdown-reader.ts';
import { ScrollBox } from '../elements/controls.tsx';
import { CitationMark, Citations } from './citations.tsx';
import { CodeBlock } from './code-block.tsx';

/** What is shown after the block that has this position of the text. */
interface MarkdownInsert {
  readonly at: number;
  readonly content: ComponentChildren;
}

export interface MarkdownProps {
  readonly text: string;
  /** The position of the text in its message. */
  readonly from?: number;
  readonly cited?: Citations;
  /** The id of the list of sources that marks refer to. */
  readonly sources?: string;
  readonly inserts?: readonly MarkdownInsert[];
}

const uncited = new Citations([]);

/**
 * Renders an agent's Markdown as elements. The library only parses it and generates no HTML, so there is none to sanitize.
 * HTML and images in it are shown as their source text.
 */
export function Markdown({ text, from = 0, cited = uncited, sources = '', inserts = [] }: MarkdownProps) {
  const reader = useMemo(() => new MarkdownReader(), []);
  let position = 0;
  return (
    <div class="prose">
      {reader.read(text).map((token, index) => {
        const begin = position;
        position += token.raw.length;
        return (
          <Fragment key={`${index}`}>
            <Block token={token} from={from + begin} cited={cited} sources={sources} />
            {inserts.map(({ at, content }) => at >= begin && at < position && content)}
          </Fragment>
        );
      })}
    </div>
  );
}

interface BlockProps {
  readonly token: Token;
  readonly from: number;
  readonly cited: Citations;
  readonly sources: string;
}

// A token changes only the last block; the others are memoized.
function Block({ token, from, cited, sources }: BlockProps): JSX.Element {
  return useMemo(
    () => <>{new BlockRenderer({ token, from, cited, sources }).render(token)}</>,
    [token.raw, from, cited, sources],
  );
}

/** Characters of Markdown syntax that may stand between two texts. */
const maxSyntax = 1_000;

const safeLink = /^(https?:|mailto:)/i;

/** Renders the tokens of a block, and tracks their positions in the text for citations. */
class BlockRenderer {
  readonly #block: BlockProps;
  #position = 0;

  constructor(block: BlockProps) {
    this.#block = block;
  }

  render(anyToken: Token): ComponentChildren {
    // Without extensions, the lexer makes no other tokens.
    const token = anyToken as MarkedToken;
    switch (token.type) {
      case 'paragraph':
        return <p>{this.#renderAll(token.tokens)}</p>;
      case 'heading': {
        // The page uses the first two levels itself.
        const Heading = `h${Math.min(token.depth + 2, 6)}` as 'h3';
        return <Heading>{this.#renderAll(token.tokens)}</Heading>;
      }
      case 'list':
        return this.#list(token);
      case 'blockquote':
        return <blockquote>{this.#renderAll(token.tokens)}</blockquote>;
      case 'code':
        return <CodeBlock code={token.text} language={token.lang?.split(/\s/, 1)[0] ?? ''} />;
      case 'table':
        return this.#table(token);
      case 'hr':
        return <hr />;
      case 'html':
        return token.block ? <p>{this.#text(token.raw)}</p> : this.#text(token.raw);
      case 'space':
      case 'def':
        return null;
      default:
        return this.#inline(token);
    }
  }

  #inline(token: MarkedToken): ComponentChildren {
    switch (token.type) {
      case 'strong':
        return <strong>{this.#renderAll(token.tokens)}</strong>;
      case 'em':
        return <em>{this.#renderAll(token.tokens)}</em>;
      case 'del':
        return <del>{this.#renderAll(token.tokens)}</del>;
      case 'codespan':
        return <code>{token.text}</code>;
      case 'br':
        return <br />;
      case 'checkbox':
        return <input type="checkbox" checked={token.checked} disabled aria-label={token.checked ? 'done' : 'to do'} />;
      case 'link':
        return safeLink.test(token.href) ? (
          <a href={token.href} title={token.title ?? undefined} target="_blank" rel="noopener noreferrer">
            {this.#renderAll(token.tokens)}
          </a>
        ) : (
          this.#text(token.raw)
        );
      case 'text':
        return token.tokens === undefined ? this.#text(token.raw) : this.#renderAll(token.tokens);
      case 'escape':
        return token.text;
      default:
        return this.#text(token.raw);
    }
  }

  #renderAll(tokens: readonly Token[]): ComponentChildren {
    return tokens.map((token) => this.render(token));
  }

  #list({ ordered, start, items }: Tokens.List): JSX.Element {
    const rows = items.map((item, at) => <li key={`${at}`}>{this.#renderAll(item.tokens)}</li>);
    return ordered ? <ol start={start === '' ? 1 : start}>{rows}</ol> : <ul>{rows}</ul>;
  }

  #table({ header, rows }: Tokens.Table): JSX.Element {
    return (
      <ScrollBox class="wide" label="Table">
        <table>
          <thead>
            <tr>
              {header.map(({ tokens }, at) => (
                <th key={`${at}`}>{this.#renderAll(tokens)}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row, at) => (
              <tr key={`${at}`}>
                {row.map(({ tokens }, cell) => (
                  <td key={`${cell}`}>{this.#renderAll(tokens)}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </ScrollBox>
    );
  }

  // Tokens lose the indent of lists and quotes, so a text is searched from the end of the previous one. A text that is
  // not found is placed there.
  #text(raw: string): ComponentChildren {
    const { token, from, cited, sources } = this.#block;
    const found = token.raw.slice(this.#position, this.#position + raw.length + maxSyntax).indexOf(raw);
    const start = this.#position + Math.max(found, 0);
    const since = from + this.#position;
    this.#position = start + raw.length;
    return cited.split(from + start, raw, since).map(({ text, cited, marks }, index) => (
      <>
        {cited ? <span class="cited">{decodeEntities(text)}</span> : decodeEntities(text)}
        {marks.map(({ number, citation }) => (
          <CitationMark key={`${index}-${number}`} number={number} citation={citation} list={sources} />
        ))}
      </>
    ));
  }
}
