import { crc32, deflateSync, inflateSync } from 'node:zlib';

/**
 * A screenshot with at most 256 colours, the most frequent ones, at a third of the bytes: the others are the shades at the
 * edges of letters and lines, and become the nearest of those (ISO/IEC 15948, colour type 3).
 *
 * @param screenshot a PNG with 8 bits for each of red, green and blue, as browsers make it
 */
export function smallPng(screenshot: Buffer): Buffer {
  const { width, height, pixels } = pixelsOf(screenshot);
  const counts = new Map<number, number>();
  for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
  const palette = [...counts]
    .toSorted(([, one], [, other]) => other - one)
    .slice(0, 256)
    .map(([colour]) => colour);
  const nearest = new Map<number, number>();
  for (const colour of counts.keys()) {
    const away = palette.map((other) => distance(colour, other));
    nearest.set(colour, away.indexOf(Math.min(...away)));
  }
  // Each row begins with its filter: none, which suits indices.
  const rows = Buffer.alloc((width + 1) * height);
  for (const [at, pixel] of pixels.entries()) rows[at + Math.floor(at / width) + 1] = nearest.get(pixel) ?? 0;

  const header = Buffer.from(screenshot.subarray(16, 29));
  header[9] = 3;
  const colours = Buffer.alloc(palette.length * 3);
  for (const [at, colour] of palette.entries()) colours.writeUIntBE(colour, at * 3, 3);
  return Buffer.concat([
    screenshot.subarray(0, 8),
    chunk('IHDR', header),
    chunk('PLTE', colours),
    chunk('IDAT', deflateSync(rows, { level: 9 })),
    chunk('IEND', Buffer.alloc(0)),
  ]);
}

function distance(one: number, other: number): number {
  return [16, 8, 0].reduce((sum, shift) => sum + (((one >> shift) & 255) - ((other >> shift) & 255)) ** 2, 0);
}

function chunk(type: string, content: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type, 'latin1'), content]);
  const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)];
  length.writeUInt32BE(content.length);
  check.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, check]);
}

/** The pixels of a PNG, each as one number, row by row. */
function pixelsOf(png: Buffer): { width: number; height: number; pixels: Uint32Array } {
  const [width, height] = [png.readUInt32BE(16), png.readUInt32BE(20)];
  if (png[24] !== 8 || png[25] !== 2 || png[28] !== 0) throw new Error('The PNG has another form.');
  const parts: Buffer[] = [];
  for (let at = 8; at < png.length; at += 12 + png.readUInt32BE(at)) {
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT')
      parts.push(png.subarray(at + 8, at + 8 + png.readUInt32BE(at)));
  }
  const rows = inflateSync(Buffer.concat(parts));
  const stride = width * 3;
  const bytes = Buffer.alloc(stride * height);
  for (let y = 0; y < height; y += 1) {
    const filter = rows[y * (stride + 1)];
    for (let x = 0; x < stride; x += 1) {
      const at = y * stride + x;
      const left = x >= 3 ? (bytes[at - 3] ?? 0) : 0;
      const up = y > 0 ? (bytes[at - stride] ?? 0) : 0;
      const corner = x >= 3 && y > 0 ? (bytes[at - stride - 3] ?? 0) : 0;
      const guess = [0, left, up, (left + up) >> 1, paeth(left, up, corner)][filter ?? 0] ?? 0;
      bytes[at] = ((rows[y * (stride + 1) + 1 + x] ?? 0) + guess) & 255;
    }
  }
  return {
    width,
    height,
    pixels: Uint32Array.from({ length: width * height }, (_, at) => bytes.readUIntBE(at * 3, 3)),
  };
}

/** ISO/IEC 15948, 9.4. */
function paeth(left: number, up: number, corner: number): number {
  const estimate = left + up - corner;
  const [a, b, c] = [left, up, corner].map((value) => Math.abs(estimate - value)) as [number, number, number];
  return a <= b && a <= c ? left : b <= c ? up : corner;
}
