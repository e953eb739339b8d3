import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Begins with what starts programs, browsers and guests, tries many histories or waits, which takes longest: so no worker is left alone at the end. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const isLong = ({ moduleId }: TestSpecification) =>
      /\/test\/(?:e2e|packets|proof|operate)\/|\/(?:histories|postgres)[^/]*$/.test(moduleId);
    const sorted = await super.sort(files);
    return [...sorted.filter(isLong), ...sorted.filter((file) => !isLong(file))];
  }
}

export default defineConfig({
  root: fileURLToPath(new URL('..', import.meta.url)),
  test: {
    include: ['test/**/*.test.ts'],
    // They end what hangs, and measure nothing: a slow machine is slow and passes.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    // Of two cores: one worker more than cores, since a test often waits for a process, a guest or a browser. Four gain nothing.
    maxWorkers: 3,
    // A process of its own for each file would start, load and warm up the sources 225 times: a quarter of all work.
    isolate: false,
    // Much is thrown away soon. With room for it the collector does a tenth less work in all.
    execArgv: ['--max-semi-space-size=32'],
    sequence: { sequencer: LongestFirst },
    // So each file ends what it began; one that leaves a server or a process behind fails.
    setupFiles: ['test/fixtures/each-file.ts'],
    globalSetup: [
      'test/fixtures/one-place.ts',
      'test/fixtures/one-build.ts',
      'test/fixtures/one-postgres.ts',
    ],
  },
});
