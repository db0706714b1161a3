import type { MarkedToken, Token, Tokens } from 'marked';
import type { ComponentChildren, JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import type { CitationMetadata } from '../../schema/message.ts';
import { Citations } from '../citations.ts';
import { MarkdownReader } from '../markdown-reader.ts';
import { CitationMark } from './citation-mark.tsx';
import { ScrollBox } from './scroll-box.tsx';

/**
 * What an agent says, as elements: the Markdown is only read by the library, and no HTML is ever made of it, so that
 * there is none to be cleaned. HTML in it, and pictures from elsewhere, are shown as the text that they are.
 */
export function Markdown({ text, citations = [] }: { text: string; citations?: readonly CitationMetadata[] }) {
  const reader = useMemo(() => new MarkdownReader(), []);
  const tokens = reader.read(text);
  const cited = useMemo(() => new Citations(citations), [citations.length]);
  let at = 0;
  return (
    <div class="prose">
      {tokens.map((token, index) => {
        const from = at;
        at += token.raw.length;
        return <Block key={`${index}`} token={token} from={from} cited={cited} />;
      })}
      {cited.unplaced.map(({ number, citation }) => (
        <CitationMark key={number} number={number} citation={citation} />
      ))}
    </div>
  );
}

interface BlockProps {
  readonly token: Token;
  readonly from: number;
  readonly cited: Citations;
}

// A token of a long answer changes its last block only; the others are the elements that they were.
function Block({ token, from, cited }: BlockProps): JSX.Element {
  return useMemo(() => <>{new Writer(cited, from, token.raw).write(token)}</>, [token.raw, from, cited]);
}

/** Characters of signs that may stand between two texts. */
const near = 1_000;

const safeLink = /^(https?:|mailto:)/i;

/** Makes elements of a block's tokens, and keeps the place in the text that each of them stands at. */
class Writer {
  readonly #cited: Citations;
  readonly #source: string;
  readonly #from: number;
  #at = 0;

  constructor(cited: Citations, from: number, source: string) {
    this.#cited = cited;
    this.#from = from;
    this.#source = source;
  }

  write(given: Token): ComponentChildren {
    // The lexer has no extensions here, and makes no other tokens without.
    const token = given as MarkedToken;
    switch (token.type) {
      case 'paragraph':
        return <p>{this.#all(token.tokens)}</p>;
      case 'heading': {
        // The page has its own first levels.
        const Heading = `h${Math.min(token.depth + 2, 6)}` as 'h3';
        return <Heading>{this.#all(token.tokens)}</Heading>;
      }
      case 'list':
        return this.#list(token);
      case 'blockquote':
        return <blockquote>{this.#all(token.tokens)}</blockquote>;
      case 'code':
        return (
          <ScrollBox class="code" label={token.lang ? `${token.lang} code` : 'Code'}>
            <pre>
              <code>{token.text}</code>
            </pre>
          </ScrollBox>
        );
      case 'table':
        return this.#table(token);
      case 'hr':
        return <hr />;
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
        return <strong>{this.#all(token.tokens)}</strong>;
      case 'em':
        return <em>{this.#all(token.tokens)}</em>;
      case 'del':
        return <del>{this.#all(token.tokens)}</del>;
      case 'codespan':
        return <code>{token.text}</code>;
      case 'br':
        return <br />;
      case 'checkbox':
        return <input type="checkbox" checked={token.checked} disabled aria-label={token.checked ? 'done' : 'to do'} />;
      case 'link':
        return safeLink.test(token.href) ? (
          <a href={token.href} title={token.title ?? undefined} target="_blank" rel="noopener noreferrer">
            {this.#all(token.tokens)}
          </a>
        ) : (
          this.#text(token.raw)
        );
      case 'text':
        return token.tokens === undefined ? this.#text(token.raw) : this.#all(token.tokens);
      case 'escape':
        return token.text;
      default:
        return this.#text(token.raw);
    }
  }

  #all(tokens: readonly Token[]): ComponentChildren {
    return tokens.map((token) => this.write(token));
  }

  #list({ ordered, start, items }: Tokens.List): JSX.Element {
    const rows = items.map((item, at) => <li key={`${at}`}>{this.#all(item.tokens)}</li>);
    return ordered ? <ol start={start === '' ? 1 : start}>{rows}</ol> : <ul>{rows}</ul>;
  }

  #table({ header, rows }: Tokens.Table): JSX.Element {
    return (
      <ScrollBox class="wide" label="Table">
        <table>
          <thead>
            <tr>
              {header.map(({ tokens }, at) => (
                <th key={`${at}`}>{this.#all(tokens)}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.map((row, at) => (
              <tr key={`${at}`}>
                {row.map(({ tokens }, cell) => (
                  <td key={`${cell}`}>{this.#all(tokens)}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </ScrollBox>
    );
  }

  // Indented lines of lists and quotes lose their indent in the tokens, so a text is looked for from where the last
  // one ended; what is not found keeps that place.
  #text(raw: string): ComponentChildren {
    const found = this.#source.slice(this.#at, this.#at + raw.length + near).indexOf(raw);
    const start = this.#at + Math.max(found, 0);
    const since = this.#from + this.#at;
    this.#at = start + raw.length;
    return this.#cited.cut(this.#from + start, raw, since).map(({ text, cited, marks }, at) => (
      <>
        {cited ? <span class="cited">{readable(text)}</span> : readable(text)}
        {marks.map(({ number, citation }) => (
          <CitationMark key={`${at}-${number}`} number={number} citation={citation} />
        ))}
      </>
    ));
  }
}

const entities: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  '#39': "'",
  nbsp: '\u00a0',
};
const readable = (text: string): string =>
  text.includes('&')
    ? text.replace(/&(amp|lt|gt|quot|#39|nbsp);/g, (all, name: string) => entities[name] ?? all)
    : text;
