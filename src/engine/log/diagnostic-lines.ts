import type { Diagnostic } from '../../schema/diagnostic.ts';

/** How a line of the journal begins that is a diagnostic. A replay passes over such lines. */
const prefix = '{"diagnostic":';

export const diagnosticLine = (diagnostic: Diagnostic): string => `${prefix}${JSON.stringify(diagnostic)}}`;

export const isDiagnosticLine = (line: string): boolean => line.startsWith(prefix);

/** The JSON of the diagnostic in a line. */
export const diagnosticIn = (line: string): string => line.slice(prefix.length, -1);
