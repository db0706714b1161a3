import type { Options } from 'minisearch';

/** What a search finds. */
export interface Section {
  /** The page and the anchor, such as `approvals#escalate`; of the first section of a page `approvals#`. */
  readonly id: string;
  readonly page: string;
  readonly heading: string;
  readonly text: string;
}

/** How the build makes the index and the browser searches it. The words of code are its letters and digits. */
export const indexOptions: Options<Section> = {
  fields: ['page', 'heading', 'text'],
  storeFields: ['page', 'heading', 'text'],
  tokenize: (text) => text.split(/[^\p{L}\p{N}]+/u).filter((word) => word !== ''),
  searchOptions: {
    boost: { heading: 4, page: 2 },
    prefix: true,
    fuzzy: (word) => (word.length > 4 ? 0.2 : false),
  },
};
