/** The media type of {@link expositionText}. */
export const EXPOSITION_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** Labels of a sample, by name. A value may be any text; a name is a word. */
export type Labels = Readonly<Record<string, string>>;

/** One line: the family's name with a suffix (`_bucket`, `_sum`, `_count`, or none), labels, and a value. */
export interface Sample {
  suffix?: '_bucket' | '_sum' | '_count';
  labels: Labels;
  value: number;
}

/** Everything that one metric says. Names are in base units: seconds, bytes. */
export interface Family {
  /** `[a-z_][a-z0-9_]*`; a counter's ends in `_total`. */
  name: string;
  type: 'counter' | 'gauge' | 'histogram';
  /** What it counts, for people. */
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
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escapeLabel(value)}"`);
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

function escapeHelp(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n');
}

function escapeLabel(text: string): string {
  return escapeHelp(text).replaceAll('"', '\\"');
}

/** A number as Go's ParseFloat reads it, as the format requires. */
export function valueText(value: number): string {
  if (Number.isNaN(value)) return 'NaN';
  if (Number.isFinite(value)) return String(value);
  return value > 0 ? '+Inf' : '-Inf';
}
