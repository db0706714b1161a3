import { once } from '../core/once.ts';
import { type Found, find, loadIndex, type Piece } from './guide/search.ts';

/** The element; the template of the pages has each of them once. */
function part<T extends HTMLElement>(selector: string, type: new () => T): T {
  const found = document.querySelector(selector);
  if (!(found instanceof type)) throw new Error(`guide.html has no ${selector}`);
  return found;
}

const search = part('search', HTMLElement);
const box = part('search input', HTMLInputElement);
const results = part('.results', HTMLElement);
const status = part('.results [role="status"]', HTMLElement);
const list = part('.results ul', HTMLUListElement);

const loaded = once(() => loadIndex(search.dataset.index ?? ''));

// The index is loaded before the first letter is typed.
box.addEventListener('focus', () => void loaded().catch(() => {}));
box.addEventListener('input', () => void showResults());

async function showResults(): Promise<void> {
  try {
    const sections = await loaded();
    // The text may have changed while the index was loaded.
    const query = box.value.trim();
    const found = find(sections, query);
    list.replaceChildren(...found.map(resultItem));
    status.textContent = found.length > 0 ? `Best matches: ${found.length}` : 'No section has these words.';
    results.hidden = query === '';
  } catch {
    status.textContent = 'The search could not be loaded. Check the connection, and type again.';
    results.hidden = false;
  }
}

function resultItem({ id, page, heading, excerpt }: Found): HTMLLIElement {
  const [name = '', anchor = ''] = id.split('#');
  const link = document.createElement('a');
  link.href = `${search.dataset.guide}${name && `/${name}`}${anchor && `#${anchor}`}`;
  link.append(
    textElement('small', [{ text: page, found: false }]),
    textElement('b', heading),
    textElement('span', excerpt),
  );
  const item = document.createElement('li');
  item.append(link);
  return item;
}

function textElement(tag: string, pieces: readonly Piece[]): HTMLElement {
  const element = document.createElement(tag);
  for (const { text, found } of pieces) {
    const mark = found ? document.createElement('mark') : undefined;
    mark?.append(text);
    element.append(mark ?? text);
  }
  return element;
}

const close = (): void => {
  results.hidden = true;
};

/** Moves the focus between the box and the results. */
function move(by: 1 | -1): void {
  const stops: HTMLElement[] = [box, ...(results.hidden ? [] : list.querySelectorAll('a'))];
  const at = stops.findIndex((stop) => stop.matches(':focus'));
  stops.at((at + by) % stops.length)?.focus();
}

search.addEventListener('keydown', (event) => {
  if (event.isComposing) return;
  if (event.key === 'ArrowDown') move(1);
  else if (event.key === 'ArrowUp') move(-1);
  else if (event.key === 'Enter' && event.target === box) list.querySelector('a')?.click();
  else if (event.key === 'Escape') {
    if (results.hidden) box.value = '';
    close();
    box.focus();
  } else return;
  event.preventDefault();
});
search.addEventListener('focusout', ({ relatedTarget }) => {
  if (relatedTarget instanceof Node && !search.contains(relatedTarget)) close();
});
search.addEventListener('focusin', ({ target }) => {
  if (target === box && box.value.trim() !== '') void showResults();
});
// A result on the same page loads no other.
list.addEventListener('click', close);
document.addEventListener('pointerdown', ({ target }) => {
  if (target instanceof Node && !search.contains(target)) close();
});

document.addEventListener('keydown', (event) => {
  const { key, target, ctrlKey, metaKey, altKey } = event;
  if (key !== '/' || ctrlKey || metaKey || altKey || target instanceof HTMLInputElement) return;
  event.preventDefault();
  box.focus();
  box.select();
});

const menu = part('.menu', HTMLButtonElement);
const pages = part('#pages', HTMLElement);

function openMenu(open: boolean): void {
  menu.setAttribute('aria-expanded', String(open));
  pages.classList.toggle('open', open);
  if (open) showCurrent();
}

/** Scrolls the list, which is longer than most windows, to the page that is shown. */
function showCurrent(): void {
  pages.scrollTop = part('#pages [aria-current]', HTMLAnchorElement).offsetTop - pages.clientHeight / 3;
}

showCurrent();

menu.addEventListener('click', () => openMenu(menu.getAttribute('aria-expanded') !== 'true'));
pages.addEventListener('click', ({ target }) => target instanceof HTMLAnchorElement && openMenu(false));
pages.addEventListener('keydown', ({ key }) => {
  if (key !== 'Escape') return;
  openMenu(false);
  menu.focus();
});
