import type { Command } from 'commander';
import { Failure } from '../../contract/failure.ts';

/**
 * Commander hands what `serve` and its sub-command call alike to `serve`, wherever it stands. The sub-command takes it
 * from there, and refuses what only `serve` knows.
 *
 * @throws Failure `usage`
 */
export function takeFlagsOfServe(command: Command): void {
  const { parent: serve } = command;
  for (const option of serve?.options ?? []) {
    const name = option.attributeName();
    if (serve?.getOptionValueSource(name) !== 'cli') continue;
    if (!command.options.some(({ long }) => long === option.long)) {
      throw new Failure('usage', `${option.long ?? option.flags} is no flag of serve ${command.name()}.`, {
        fix: `slices-conn serve ${command.name()} --help`,
      });
    }
    command.setOptionValueWithSource(name, serve.getOptionValue(name), 'cli');
  }
}
