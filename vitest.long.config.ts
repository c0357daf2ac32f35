import { defineConfig } from 'vitest/config'

/** The suites that take minutes: kill -9 loops, the packed tarball. One file at a time, so that timings mean something. */
export default defineConfig({
  test: {
    // Two cores with much to do: nothing here measures time.
    expect: { poll: { timeout: 10_000 } },
    include: ['tests/long/**/*.test.ts'],
    fileParallelism: false,
    testTimeout: 900_000,
    hookTimeout: 120_000,
  },
})
