import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';

export default defineConfig({
  root: fileURLToPath(new URL('..', import.meta.url)),
  test: {
    include: ['test/**/*.test.ts'],
    // They end what hangs, and measure nothing: a slow machine is slow and passes.
    testTimeout: 300_000,
    hookTimeout: 300_000,
    // Two cores: more workers only wait for each other.
    maxWorkers: 2,
    globalSetup: ['test/fixtures/one-build.ts', 'test/fixtures/one-postgres.ts'],
  },
});
