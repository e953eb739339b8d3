/** What is asked for between two sites at an instant, and the routes that can carry it. */
export interface Flow {
  demand: number;
  /** Each is the indexes of its links. */
  routes: readonly (readonly number[])[];
}

/**
 * The most that links can carry of some flows, where each may be cut and split over its routes at will: a linear program, by
 * the simplex algorithm in a dense table.
 *
 * @param capacities of the links
 */
export function mostFlow(flows: readonly Flow[], capacities: readonly number[]): number {
  const columns = flows.flatMap(({ routes }, flow) => routes.map((route) => ({ route, flow })));
  const last = columns.length;
  const byLink = capacities.map((capacity, link) =>
    Float64Array.from([...columns.map(({ route }) => Number(route.includes(link))), capacity]),
  );
  const byFlow = flows.map(({ demand }, index) =>
    Float64Array.from([...columns.map(({ flow }) => Number(flow === index)), demand]),
  );
  const gain = Float64Array.from([...columns.map(() => -1), 0]);
  const rows = [...byLink, ...byFlow];
  for (;;) {
    const best = Math.min(...gain.subarray(0, last));
    if (best > -1e-9) return of(gain, last);
    const entering = gain.indexOf(best);
    const steps = rows.map((row) =>
      of(row, entering) > 1e-9 ? of(row, last) / of(row, entering) : Number.POSITIVE_INFINITY,
    );
    const leaving = rows[steps.indexOf(Math.min(...steps))];
    if (!leaving) throw new RangeError('a flow has no limit');
    exchange(leaving, entering, [...rows, gain]);
  }
}

/** Lets a column enter in place of what a row stood for; that one's own column takes its place in the table. */
function exchange(leaving: Float64Array, entering: number, rows: readonly Float64Array[]): void {
  const pivot = of(leaving, entering);
  leaving[entering] = 1;
  for (let column = 0; column < leaving.length; column += 1) leaving[column] = of(leaving, column) / pivot;
  for (const row of rows) {
    const times = of(row, entering);
    if (row === leaving || times === 0) continue;
    row[entering] = 0;
    for (let column = 0; column < row.length; column += 1) {
      row[column] = of(row, column) - times * of(leaving, column);
    }
  }
}

function of(row: Float64Array, column: number): number {
  return row[column] ?? Number.NaN;
}
