import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    // Two cores with much to do: nothing here measures time.
    expect: { poll: { timeout: 10_000 } },
    include: ['tests/**/*.test.ts'],
    exclude: ['tests/long/**', 'tests/agents/**'],
    // All cores: most tests wait, for disks, terminals and browsers.
    maxWorkers: Math.max(2, availableParallelism()),
    testTimeout: 30_000,
    hookTimeout: 60_000,
  },
})
