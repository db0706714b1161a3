import { parser, Renderer, type Tokens } from 'marked';
import { highlight } from '../conversation/highlighter.ts';
import { Anchors, type GuidePage, linkedFile, pathOf, textOf } from './pages.ts';

type Tree = NonNullable<ReturnType<typeof highlight>>['children'][number];

export interface Picture {
  /** Relative to the prefix of the server. */
  readonly path: string;
  readonly width: number;
  readonly height: number;
}

export interface PageContext {
  readonly pages: readonly GuidePage[];
  readonly picture: (file: string) => Picture;
}

const escapes: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

export const escapeHtml = (text: string): string => text.replace(/[&<>"']/g, (char) => escapes[char] ?? char);

/** The way from a page to the prefix of the server: URLs are relative, because the build does not know the prefix. */
export const rootOf = (page: GuidePage): string => '../'.repeat(pathOf(page).split('/').length - 1);

/** The HTML of a page's text. */
export const pageHtml = (page: GuidePage, context: PageContext): string =>
  parser(page.tokens, { renderer: new PageRenderer(page, context) });

/**
 * Only this renderer and the library make tags and attributes. HTML in Markdown becomes text, and comments, which are
 * for the tests, become nothing.
 */
class PageRenderer extends Renderer {
  readonly #page: GuidePage;
  readonly #context: PageContext;
  readonly #anchors = new Anchors();

  constructor(page: GuidePage, context: PageContext) {
    super();
    this.#page = page;
    this.#context = context;
  }

  override html({ text }: Tokens.HTML | Tokens.Tag): string {
    return escapeHtml(text.replace(/<!--[\s\S]*?-->/g, '')).trim();
  }

  override heading({ depth, tokens }: Tokens.Heading): string {
    const anchor = escapeHtml(this.#anchors.next(textOf(tokens)));
    const text = this.parser.parseInline(tokens);
    if (depth === 1) return `<h1 id="${anchor}">${text}</h1>\n`;
    const link = `<a class="anchor" href="#${anchor}" aria-hidden="true" tabindex="-1">#</a>`;
    return `<h${depth} id="${anchor}">${text} ${link}</h${depth}>\n`;
  }

  override code({ text, lang = '' }: Tokens.Code): string {
    const language = lang.split(/\s/, 1)[0] ?? '';
    const tree = highlight(language, text);
    const code = tree === undefined ? escapeHtml(text) : tree.children.map(treeHtml).join('');
    const label = escapeHtml(language === '' ? 'Code' : `${language} code`);
    return `<div class="code" role="group" aria-label="${label}" tabindex="0"><pre><code>${code}</code></pre></div>\n`;
  }

  override table({ header, rows }: Tokens.Table): string {
    const row = (cells: readonly Tokens.TableCell[], tag: 'th' | 'td'): string =>
      `<tr>${cells.map(({ tokens }) => `<${tag}>${this.parser.parseInline(tokens)}</${tag}>`).join('')}</tr>`;
    const table = `<thead>${row(header, 'th')}</thead><tbody>${rows.map((cells) => row(cells, 'td')).join('')}</tbody>`;
    return `<div class="wide" role="group" aria-label="Table" tabindex="0"><table>${table}</table></div>\n`;
  }

  override link({ href, tokens }: Tokens.Link): string {
    const label = this.parser.parseInline(tokens);
    if (/^https?:/i.test(href)) return `<a href="${escapeHtml(href)}" rel="noreferrer">${label}</a>`;
    if (href.startsWith('#')) return `<a href="${escapeHtml(href)}">${label}</a>`;
    const [path = '', anchor] = href.split('#');
    const file = linkedFile(this.#page.file, path);
    if (file === undefined) return label;
    const page = this.#context.pages.find((one) => one.file === file);
    if (page === undefined) return this.#file(file, label, textOf(tokens));
    const hash = anchor === undefined ? '' : `#${escapeHtml(anchor)}`;
    return `<a href="${rootOf(this.#page)}${pathOf(page)}${hash}">${label}</a>`;
  }

  // The repository has no public address to link to, and the package has only some of its files: the path has to do.
  #file(file: string, label: string, text: string): string {
    return text.includes(file) ? label : `${label} (<code>${escapeHtml(file)}</code>)`;
  }

  override image({ href, text }: Tokens.Image): string {
    const file = linkedFile(this.#page.file, href);
    if (file === undefined) return escapeHtml(text);
    const { path, width, height } = this.#context.picture(file);
    const src = escapeHtml(rootOf(this.#page) + path);
    return `<img src="${src}" alt="${escapeHtml(text)}" width="${width}" height="${height}" />`;
  }
}

/** The class names are the library's own. */
function treeHtml(node: Tree): string {
  if (node.type === 'text') return escapeHtml(node.value);
  if (node.type !== 'element') return '';
  const { className } = node.properties;
  const names = Array.isArray(className) ? className.join(' ') : '';
  return `<span class="${escapeHtml(names)}">${node.children.map(treeHtml).join('')}</span>`;
}
