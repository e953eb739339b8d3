import { expect, test } from 'vitest';
import { importsOf, SOURCES } from '../src/build/structure.ts';

/**
 * What each package of the design card does here: the file of src that calls it, and how, and what would be a twin of it
 * anywhere in src.
 */
const WORK: readonly [name: string, file: string, call: RegExp, twin: RegExp][] = [
  ['eventsource-parser', 'src/client/events.ts', /createParser\(\{/, /'data'\) this\.|split\(\/\\r\\n\|\\n/],
  ['cli-table3', 'src/cli/print/output.ts', /new this\.#table\(\{/, /#cut\(/],
  ['ora', 'src/main/terminal.ts', /spinner\.start\(\)/, /spinner\.render\(/],
  ['jose', 'src/tokens/verify.ts', /jwtVerify\(token, /, /compactVerify|nbf > /],
  ['jose', 'src/tokens/key-set.ts', /createLocalJWKSet\(/, /keyFits|importJWK\(publicPartOf/],
  ['jose', 'src/tokens/claimed.ts', /decodeJwt\(token\)/, /atob\(part/],
  ['undici', 'src/client/transport.ts', /interceptors\.retry\(\{/, /pauseBeforeNext/],
  ['conf', 'src/session/profiles/profiles.ts', /file\.store = preferences/, /replaceWhole\(fileIn/],
];

const imports = [...SOURCES.keys()].flatMap(importsOf);

test.each(WORK)('%s does its work in %s, without a twin', (name, file, call, twin) => {
  expect(imports).toContainEqual(expect.objectContaining({ from: file, to: name }));
  expect(SOURCES.get(file)).toMatch(call);
  expect([...SOURCES].filter(([, text]) => twin.test(text)).map(([path]) => path)).toEqual([]);
});
