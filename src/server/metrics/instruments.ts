/** The values of one instrument, by their labels, which are always given in one order. */
class Series<Value> extends Map<string, { labels: Labels; value: Value }> {
  readonly #initial: () => Value;

  /** @param shown label sets that are there before anything happened, so that a first rise is seen */
  constructor(initial: () => Value, shown: readonly Labels[]) {
    super();
    this.#initial = initial;
    for (const labels of shown) this.at(labels);
  }

  at(labels: Labels): { labels: Labels; value: Value } {
    const key = JSON.stringify(labels);
    const found = this.get(key) ?? { labels, value: this.#initial() };
    this.set(key, found);
    return found;
  }
}

/** A family of single numbers. One whose name ends in `_total` only grows until the process ends. */
export function familyOf(name: string, help: string, samples: Family['samples']): Family {
  return { name, help, type: name.endsWith('_total') ? 'counter' : 'gauge', samples };
}

/** A number to which is added; see {@link familyOf}. */
export class Counter {
  readonly #name: string;
  readonly #help: string;
  readonly #series: Series<number>;

  /** @param shown label sets that are shown as 0 before anything happened */
  constructor(name: string, help: string, shown: readonly Labels[] = []) {
    [this.#name, this.#help] = [name, help];
    this.#series = new Series(() => 0, shown);
  }

  add(labels: Labels = {}, amount = 1): void {
    this.#series.at(labels).value += amount;
  }

  family(): Family {
    return familyOf(this.#name, this.#help, [...this.#series.values()]);
  }
}

/** Counts values by size: for each bound, how many values were at most that large. */
export class Histogram {
  readonly #name: string;
  readonly #help: string;
  readonly #bounds: readonly number[];
  readonly #series: Series<{ counts: number[]; sum: number }>;

  /**
   * @param bounds in rising order; values above the last one are counted too
   * @param shown as for {@link Counter}
   */
  constructor(name: string, help: string, bounds: readonly number[], shown: readonly Labels[] = []) {
    [this.#name, this.#help] = [name, help];
    this.#bounds = [...bounds, Number.POSITIVE_INFINITY];
    this.#series = new Series(() => ({ counts: this.#bounds.map(() => 0), sum: 0 }), shown);
  }

  observe(value: number, labels: Labels = {}): void {
    const { value: spread } = this.#series.at(labels);
    const place = this.#bounds.findIndex((bound) => value <= bound);
    spread.counts[place] = (spread.counts[place] ?? 0) + 1;
    spread.sum += value;
  }

  family(): Family {
    const samples = [...this.#series.values()].flatMap(({ labels, value: { counts, sum } }): Sample[] => {
      let total = 0;
      const buckets = this.#bounds.map((bound, place): Sample => {
        total += counts[place] ?? 0;
        return { suffix: '_bucket', labels: { ...labels, le: valueText(bound) }, value: total };
      });
      return [...buckets, { suffix: '_sum', labels, value: sum }, { suffix: '_count', labels, value: total }];
    });
    return { name: this.#name, help: this.#help, type: 'histogram', samples };
  }
}

/** The media type of {@link expositionText}. */
export const EXPOSITION_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** Labels of a sample, by name. A value may be any text; a name is a word. */
export type Labels = Readonly<Record<string, string>>;

/** One line: the family's name with a suffix (`_bucket`, `_sum`, `_count`, or none), labels, and a value. */
interface Sample {
  suffix?: '_bucket' | '_sum' | '_count';
  labels: Labels;
  value: number;
}

/** One metric with its samples. Names are in base units: seconds, bytes. */
export interface Family {
  /** `[a-z_][a-z0-9_]*`; a counter's ends in `_total`. */
  name: string;
  type: 'counter' | 'gauge' | 'histogram';
  /** Its meaning, for people. */
  help: string;
  samples: readonly Sample[];
}

/**
 * Metrics in Prometheus' text format, version 0.0.4
 * (https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format).
 *
 * @example
 * // # HELP slices_conn_things_total Things.
 * // # TYPE slices_conn_things_total counter
 * // slices_conn_things_total{kind="a \"b\""} 3
 */
export function expositionText(families: readonly Family[]): string {
  return families
    .map(({ name, type, help, samples }) => {
      const lines = samples.map(
        ({ suffix = '', labels, value }) => `${name}${suffix}${labelText(labels)} ${valueText(value)}\n`,
      );
      return `# HELP ${name} ${escapeHelp(help)}\n# TYPE ${name} ${type}\n${lines.join('')}`;
    })
    .join('');
}

function labelText(labels: Labels): string {
  const pairs = Object.entries(labels).map(
    ([name, value]) => `${name}="${escapeHelp(value).replaceAll('"', '\\"')}"`,
  );
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

function escapeHelp(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}

/** A number as Go's ParseFloat reads it, as the format requires. */
export function valueText(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (Number.isFinite(value)) return String(value);
  return value > 0 ? '+Inf' : '-Inf';
}
