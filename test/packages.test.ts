import { expect, test } from 'vitest';
import { importsOf, SOURCES } from '../src/build/structure.ts';

/**
 * What each package of the design card does here: the one file of src that calls it so, and what would be a twin of it
 * anywhere in src.
 */
const WORK: readonly [name: string, file: string, call: RegExp, twin: RegExp][] = [
  ['eventsource-parser', 'src/client/events.ts', /createParser\(\{/, /'data'\) this\.|split\(\/\\r\\n\|\\n/],
  ['cli-table3', 'src/cli/print/output.ts', /new this\.#table\(\{/, /#cut\(/],
  ['ora', 'src/main/terminal.ts', /spinner\.start\(\)/, /spinner\.render\(/],
];

test.each(WORK)('%s does its work in %s, without a twin', (name, file, call, twin) => {
  const importers = [...SOURCES.keys()].filter((path) => importsOf(path).some(({ to }) => to === name));
  expect(importers).toEqual([file]);
  expect(SOURCES.get(file)).toMatch(call);
  expect([...SOURCES].filter(([, text]) => twin.test(text)).map(([path]) => path)).toEqual([]);
});
