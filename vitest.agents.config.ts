import { defineConfig } from 'vitest/config'
import { Sequencer } from './tests/schedule.ts'

/** The suites with the real agent programs, which are installed first. Three at a time: they mostly wait. */
export default defineConfig({
  test: {
    // Generous, because two cores are busy and nothing here measures time.
    expect: { poll: { timeout: 60_000 } },
    include: ['tests/real-agents/**/*.test.ts'],
    globalSetup: ['tests/real-agents/harness/install.ts', 'tests/fakes/program.ts'],
    maxWorkers: 3,
    sequence: { sequencer: Sequencer },
    testTimeout: 400_000,
    hookTimeout: 240_000,
    teardownTimeout: 30_000,
    retry: 0,
  },
})
