import { readFileSync, statSync } from 'node:fs';
import { dirname, relative } from 'node:path';
import { expect, test } from 'vitest';
import { MOST_BYTES, PAGE_PICTURES } from './page-pictures.ts';
import { makePictures, PICTURE, README, withBlocks } from './pictures.ts';

test('the pictures of the README are those of the program; else: npm run pictures', async () => {
  const pictures = await makePictures();
  const readme = readFileSync(README, 'utf8');
  expect(withBlocks(readme, pictures)).toBe(readme);
  expect(readFileSync(PICTURE, 'utf8')).toBe(pictures.svg);
});

test('the pictures of the page are in the README, and are small', () => {
  const readme = readFileSync(README, 'utf8');
  for (const path of Object.values(PAGE_PICTURES)) {
    expect(readme).toContain(`](${relative(dirname(README), path)})`);
    // PNG's signature (ISO/IEC 15948, 5.2).
    expect(readFileSync(path).subarray(0, 8).toString('latin1')).toBe('\x89PNG\r\n\x1a\n');
    expect(statSync(path).size).toBeLessThanOrEqual(MOST_BYTES);
  }
});
