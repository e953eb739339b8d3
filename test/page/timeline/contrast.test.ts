import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const [LIGHT = '', DARK = ''] = readFileSync(
  fileURLToPath(new URL('../../../src/page/timeline/timeline.css', import.meta.url)),
  'utf8',
).split('@media (prefers-color-scheme: dark)');

/** The relative luminance of a colour of the drawing (WCAG 2.2). */
function luminance(style: string, name: string): number {
  const [, ...parts] = new RegExp(`--timeline-${name}: #(..)(..)(..);`).exec(style) ?? [];
  expect(parts).toHaveLength(3);
  const [red = 0, green = 0, blue = 0] = parts.map((part) => {
    const share = Number.parseInt(part, 16) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
}

test.each([
  ['light', LIGHT],
  ['dark', DARK],
])('in the %s, what lies beside each other in the drawing differs by 3:1 (WCAG 2.2, 1.4.11)', (_, style) => {
  for (const [one, other] of [
    ['free', 'used'],
    ['used', 'full'],
    ['none', 'free'],
  ] as const) {
    const [dark = 0, light = 0] = [luminance(style, one), luminance(style, other)].toSorted((a, b) => a - b);
    expect([one, other, (light + 0.05) / (dark + 0.05) >= 3]).toEqual([one, other, true]);
  }
});
