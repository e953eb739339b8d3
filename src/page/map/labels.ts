/** A part of the picture, in CSS pixels. */
export interface Rect {
  x: number;
  y: number;
  width: number;
  height: number;
}

/** Where a name is written. */
export interface LabelBox extends Rect {
  /** Whether it lies so far from its dot that a thin line leads to it. */
  leader: boolean;
}

/** The sides of a dot on which a name can stand, and how much each is disliked, in pixels of hidden links. */
const SIDES: readonly (readonly [dx: number, dy: number, cost: number])[] = [
  [1, 0, 0],
  [-1, 0, 3],
  [0, -1, 4],
  [0, 1, 4],
  // Above and below, but not in the middle: beside a link that leaves the dot steeply.
  [0.6, -1, 5],
  [0.6, 1, 5],
  [-0.6, -1, 6],
  [-0.6, 1, 6],
  [1, -1, 6],
  [1, 1, 6],
  [-1, -1, 8],
  [-1, 1, 8],
];

/** The distances from a dot at which a name can stand. */
const DISTANCES: readonly (readonly [gap: number, cost: number])[] = [
  [9, 0],
  [14, 10],
  [26, 30],
  [42, 60],
];

/** The places where a dot's name could stand, with the cost of each. */
export function candidates(
  dot: { x: number; y: number },
  { width, height }: { width: number; height: number },
): (LabelBox & { cost: number })[] {
  return DISTANCES.flatMap(([gap, far]) =>
    SIDES.map(([dx, dy, cost]) => {
      // On a diagonal the corner is as far away as a side would be.
      const out = Math.abs(dx * dy) === 1 ? gap * 0.7 : gap;
      const across = Math.abs(dx) === 1 ? dx * out : 0;
      return {
        x: dot.x + across - ((1 - dx) * width) / 2,
        y: dot.y + dy * out - ((1 - dy) * height) / 2,
        ...{ width, height, leader: gap > 20, cost: cost + far },
      };
    }),
  );
}

/** Whether a rectangle touches none of the others. */
export function isFree(rect: Rect, others: readonly Rect[]): boolean {
  return !others.some(
    (other) =>
      rect.x < other.x + other.width &&
      other.x < rect.x + rect.width &&
      rect.y < other.y + other.height &&
      other.y < rect.y + rect.height,
  );
}

/** How much of the line between two points lies within a rectangle, in pixels (Liang and Barsky). */
export function lengthIn(
  { x, y, width, height }: Rect,
  from: { x: number; y: number } | undefined,
  to: { x: number; y: number } | undefined,
): number {
  if (!from || !to) return 0;
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  let [enter, leave] = [0, 1];
  for (const [step, room] of [
    [-dx, from.x - x],
    [dx, x + width - from.x],
    [-dy, from.y - y],
    [dy, y + height - from.y],
  ] as const) {
    if (step === 0 && room < 0) return 0;
    if (step < 0) enter = Math.max(enter, room / step);
    if (step > 0) leave = Math.min(leave, room / step);
  }
  return enter < leave ? (leave - enter) * Math.hypot(dx, dy) : 0;
}
