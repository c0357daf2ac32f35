import { defineConfig } from 'vitest/config'
import { Sequencer } from './tests/schedule.ts'

/** The suites that take minutes: kill -9 loops, the packed tarball. Two files at a time: some wait for clocks. */
export default defineConfig({
  test: {
    globalSetup: ['tests/fakes/program.ts'],
    // Two cores with much to do: nothing here measures time.
    expect: { poll: { timeout: 10_000 } },
    include: ['tests/long/**/*.test.ts'],
    maxWorkers: 2,
    sequence: { sequencer: Sequencer },
    testTimeout: 900_000,
    hookTimeout: 120_000,
  },
})
