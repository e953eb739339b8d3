/**
 * A flag of the command line, declared once: its text in help, and how its value is read. The key in its table is the member
 * that holds the value.
 */
export interface OptionDeclaration {
  /** As help shows it, such as `--port <number>`. Without a value in brackets it is a switch. */
  flags: string;
  help: string;
  /** Turns text into the value. @param before the value so far, of a flag that was given before @throws RangeError */
  parse?: (text: string, before?: never) => unknown;
  choices?: readonly string[];
  default?: unknown;
  /** The default as help shows it. */
  defaultText?: string;
  /** Whether the command can't do without it. */
  required?: boolean;
  /** The heading in help of this flag and of those after it, up to the next heading. */
  group?: string;
  /** Members whose flags can't be given together with this one. */
  conflicts?: readonly string[];
}

/** The flags of a command, by the members that hold their values. */
export type OptionTable = Readonly<Record<string, OptionDeclaration>>;

/** The value of a flag whose value may be left out is true without it. */
type Bare<One> = One extends { flags: `${string} [${string}` } ? true : never;
type ValueOf<One> =
  | Bare<One>
  | (One extends { parse: (text: string) => infer Value }
      ? Value
      : One extends { choices: readonly (infer Choice)[] }
        ? Choice
        : One extends { flags: `${string}...${string}` }
          ? readonly string[]
          : One extends { flags: `${string}<${string}` | `${string} [${string}` }
            ? string
            : boolean);
type Given<One extends OptionTable> = {
  [Name in keyof One]: One[Name] extends { default: unknown } | { required: true } ? Name : never;
}[keyof One];

/** The values of a table's flags: optional where a flag has no default and is not required. */
export type OptionsOf<One extends OptionTable> = {
  [Name in Given<One>]: ValueOf<One[Name]>;
} & { [Name in Exclude<keyof One, Given<One>>]?: ValueOf<One[Name]> };
