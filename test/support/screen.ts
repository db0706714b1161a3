import stringWidth from 'string-width';

const sequenceOrCharacter = new RegExp(`${'\\u001b'}\\[\\??(\\d*)(?:;\\d+)*([a-zA-Z])|[\\s\\S]`, 'gu');

/** What a terminal of some columns and rows shows after it has got an output, with what has scrolled off its top. */
export function screenOf(output: string, columns = 80, rows = 30): string[] {
  const lines: string[][] = [[]];
  let [row, column] = [0, 0];
  const put = (character: string): void => {
    const width = stringWidth(character);
    if (column + width > columns) [row, column] = [row + 1, 0];
    while (lines.length <= row) lines.push([]);
    const line = lines[row] ?? [];
    while (line.length < column) line.push(' ');
    line[column] = character;
    if (width === 2) line[column + 1] = '';
    column += width;
  };
  const move = (count: number, command: string): void => {
    const top = Math.max(lines.length - rows, 0);
    if (command === 'A') row = Math.max(row - count, top);
    else if (command === 'B') row = Math.min(row + count, lines.length - 1);
    else if (command === 'C') column += count;
    else if (command === 'D') column = Math.max(column - count, 0);
    else if (command === 'G') column = count - 1;
    else if (command === 'K') lines[row]?.splice(column);
    else if (command === 'J') {
      lines[row]?.splice(column);
      lines.splice(row + 1);
    }
  };
  for (const [piece, count = '', command] of output.matchAll(sequenceOrCharacter)) {
    if (command !== undefined) move(count === '' ? 1 : Number(count), command);
    else if (piece === '\r') column = 0;
    else if (piece === '\n') {
      // The terminal's driver returns the cursor.
      [row, column] = [row + 1, 0];
      while (lines.length <= row) lines.push([]);
    } else put(piece);
  }
  return lines.map((line) => line.join('').trimEnd());
}
