import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { CopyButton, ScrollBox } from '../elements/controls.tsx';
import type { CodeTree } from './highlighter.ts';

/** Characters of code that is highlighted; more would block the page. */
const maxHighlighted = 20_000;
/** Milliseconds without a change after which code is highlighted: while it streams, it changes with each token. */
const settled = 150;

interface CodeBlockProps {
  readonly code: string;
  readonly language: string;
  /** Default: the language. */
  readonly title?: string;
}

/** A block of code with its title, a button that copies it, and highlighting. */
export function CodeBlock({ code, language, title }: CodeBlockProps) {
  const [highlighted, setHighlighted] = useState<{ readonly code: string; readonly tree: CodeTree }>();
  useEffect(() => {
    if (language === '' || code.length > maxHighlighted) return;
    let wanted = true;
    const timer = setTimeout(() => {
      import('./highlighter.ts').then(
        ({ highlight }) => {
          const tree = wanted ? highlight(language.toLowerCase(), code) : undefined;
          if (tree !== undefined) setHighlighted({ code, tree });
        },
        // Without a connection, the code stays as it is.
        () => {},
      );
    }, settled);
    return () => {
      wanted = false;
      clearTimeout(timer);
    };
  }, [code, language]);
  return (
    <div class="code-block">
      <div class="row">
        <span class="clip">{title ?? (language || 'text')}</span>
        <CopyButton label={title === undefined ? 'Copy the code' : `Copy the code: ${title}`} text={() => code} />
      </div>
      <ScrollBox class="code" label={title ?? (language ? `${language} code` : 'Code')}>
        <pre>
          <code>{highlighted?.code === code ? childrenOf(highlighted.tree) : code}</code>
        </pre>
      </ScrollBox>
    </div>
  );
}

type Node = CodeTree['children'][number];

const childrenOf = ({ children }: { readonly children: readonly Node[] }): ComponentChildren => children.map(render);

/** The class names are the library's own. */
function render(node: Node, index: number): ComponentChildren {
  if (node.type === 'text') return node.value;
  if (node.type !== 'element') return null;
  const { className } = node.properties;
  return (
    <span key={`${index}`} class={Array.isArray(className) ? className.join(' ') : undefined}>
      {childrenOf(node)}
    </span>
  );
}
