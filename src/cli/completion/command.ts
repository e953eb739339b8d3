import { Argument, Command, Option } from 'commander';
import type { Invoke } from '../context.ts';
import type { InstallFlags } from './run.ts';
import { SHELLS } from './scripts.ts';

/** `slices-conn completion bash|zsh|fish`. */
export function completionCommand(invoke: Invoke): Command {
  return new Command('completion')
    .summary('print the script that completes words in your shell')
    .description(
      'Prints the script by which a shell completes commands, flags, sites, profiles, experiments, projects and reservations.\n--install-completion sets it up permanently.',
    )
    .addArgument(new Argument('<shell>', 'your shell').choices(SHELLS))
    .addHelpText(
      'after',
      `
Examples:
  # permanently, for the shell that $SHELL names
  slices-conn --install-completion
  slices-conn --install-completion fish
  # for this shell only
  eval "$(slices-conn completion bash)"
  eval "$(slices-conn completion zsh)"
  slices-conn completion fish | source`,
    )
    .action(invoke(async () => (await import('./run.ts')).printScript));
}

/**
 * Adds the top level's `--install-completion [SHELL]`, as the official client has it (cli/README.md,
 * "Commands").
 */
export function addInstallOption(program: Command, invoke: Invoke): void {
  const act = invoke<InstallFlags>(async () => (await import('./run.ts')).install);
  program
    .addOption(
      new Option(
        '--install-completion [shell]',
        'set up completion of words for your shell, by default $SHELL',
      ).choices(SHELLS),
    )
    // Only then: with an action of its own the top level would take a misspelt command for an argument.
    .on('option:install-completion', () => program.action(act));
}
