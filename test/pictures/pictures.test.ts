import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { makePictures, PICTURE, README, withBlocks } from './pictures.ts';

test('the pictures of the README are those of the program; else: npm run pictures', async () => {
  const pictures = await makePictures();
  const readme = readFileSync(README, 'utf8');
  expect(withBlocks(readme, pictures)).toBe(readme);
  expect(readFileSync(PICTURE, 'utf8')).toBe(pictures.svg);
});
