import manifest from '../package.json' with { type: 'json' };

/**
 * The program's first step: answers what needs nothing to be loaded, and hands everything else to `main.ts`. The
 * official client asks every `slices-*` on the PATH for its version, so that answer must be quick (CLI.md,
 * "Commands").
 *
 * @param args without the program's own name
 * @returns the exit code
 */
export async function enter(args: readonly string[]): Promise<number> {
  if (args.length === 1 && args[0] === '--version') {
    process.stdout.write(`v${manifest.version}\n`);
    return 0;
  }
  const { main } = await import('./main.ts');
  return main(args, manifest.version);
}
