import { common, createLowlight } from 'lowlight';

/** Loaded when the first code block is shown, because the grammars are as large as half of the page. */
const lowlight = createLowlight(common);

export type CodeTree = ReturnType<typeof lowlight.highlight>;

/** The code as a tree of spans; undefined for an unknown language. */
export const highlight = (language: string, code: string): CodeTree | undefined =>
  lowlight.registered(language) ? lowlight.highlight(language, code) : undefined;
