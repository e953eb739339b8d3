import { type Command, InvalidArgumentError, Option } from 'commander';
import { Failure } from '../../contract/failure.ts';
import type { DeclaredOption, DeclaredOptions } from './server.ts';

/** Adds declared flags to a command, in their order. */
export function addOptions(command: Command, options: DeclaredOptions): Command {
  for (const declared of Object.values(options)) command.addOption(optionOf(declared));
  return command;
}

function optionOf(declared: DeclaredOption): Option {
  const { flags, help, parse, choices, conflicts, defaultText } = declared;
  const option = new Option(flags, help);
  if (parse) option.argParser<unknown>((text, before) => read(() => parse(text, before as never)));
  if (choices) option.choices(choices);
  if (conflicts) option.conflicts([...conflicts]);
  if (declared.default !== undefined) option.default(declared.default, defaultText);
  return option;
}

function read(parse: () => unknown): unknown {
  try {
    return parse();
  } catch (error) {
    if (error instanceof RangeError) throw new InvalidArgumentError(error.message);
    throw error;
  }
}

/**
 * Moves flags from `serve` to the command below it. Commander gives a flag that both have to `serve`, wherever it
 * stands.
 *
 * @throws Failure `usage` for a flag that only `serve` has
 */
export function takeFlagsOfServe(command: Command): void {
  const { parent: serve } = command;
  for (const option of serve?.options ?? []) {
    const name = option.attributeName();
    if (serve?.getOptionValueSource(name) !== 'cli') continue;
    if (!command.options.some(({ long }) => long === option.long)) {
      throw new Failure('usage', `serve ${command.name()} has no flag ${option.long ?? option.flags}.`, {
        fix: `slices-conn serve ${command.name()} --help`,
      });
    }
    command.setOptionValueWithSource(name, serve.getOptionValue(name), 'cli');
  }
}
