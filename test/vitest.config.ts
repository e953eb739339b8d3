import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  root: fileURLToPath(new URL('..', import.meta.url)),
  test: {
    include: ['test/**/*.test.ts'],
    testTimeout: 30_000,
    hookTimeout: 60_000,
    // Two cores: more workers only wait for each other.
    maxWorkers: 2,
    // A new process for each file costs a third of a second of processor time: tests leave nothing behind in theirs.
    isolate: false,
    unstubEnvs: true,
    globalSetup: ['test/fixtures/one-build.ts', 'test/fixtures/one-postgres.ts'],
  },
});
