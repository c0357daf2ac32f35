import { defineConfig } from 'vitest/config'

/** The suites with the real agent programs, which are installed first. One at a time: each takes a core and its memory. */
export default defineConfig({
  test: {
    include: ['tests/agents/**/*.test.ts'],
    globalSetup: ['tests/agents/harness/install.ts'],
    fileParallelism: false,
    testTimeout: 400_000,
    hookTimeout: 240_000,
    teardownTimeout: 30_000,
    retry: 0,
  },
})
