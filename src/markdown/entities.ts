const entities: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  '#39': "'",
  nbsp: '\u00a0',
};

/** The text with the entities that models write decoded. */
export const decodeEntities = (text: string): string =>
  text.includes('&')
    ? text.replace(/&(amp|lt|gt|quot|#39|nbsp);/g, (all, name: string) => entities[name] ?? all)
    : text;
