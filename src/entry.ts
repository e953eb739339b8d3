import manifest from '../package.json' with { type: 'json' };

/**
 * The program's first step: answers `--version` and `--cli-manifest` without loading anything, and passes everything else
 * to `main.ts`. The official client asks every `slices-*` on the PATH for its version, so that answer must be quick
 * (CLI.md, "Commands").
 *
 * @param args without the program's own name
 * @returns the exit code
 */
export async function enter(args: readonly string[]): Promise<number> {
  stopAtClosedPipe();
  if (args.length === 1 && args[0] === '--version') {
    process.stdout.write(`v${manifest.version}\n`);
    return 0;
  }
  if (args.length === 1 && args[0] === '--cli-manifest') {
    process.stdout.write(`${JSON.stringify(MANIFEST)}\n`);
    return 0;
  }
  process.stderr.on('error', () => undefined);
  const { main } = await import('./main/main.ts');
  return main(args, manifest.version);
}

/** What the official client reads of its sub-commands (CLI.md, "Commands"). */
const MANIFEST = {
  '@type': 'slices-cli:subcommand-metadata',
  version: '1.0',
  short_help: 'Book network links between research sites',
  tab_completion_supported: true,
  tab_completion_install_option: '--install-completion',
  visible_aliases: [],
  hidden_aliases: [],
};

/** A closed pipe is not an error: `slices-conn list | head -1`. */
function stopAtClosedPipe(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') process.exit(0);
    throw error;
  });
}
