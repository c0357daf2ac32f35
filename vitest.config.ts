import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { inOwnProcess, Sequencer } from './tests/schedule.ts'

const all = 'tests/**/*.test.ts'
const others = ['tests/long/**', 'tests/real-agents/**']
const alone = inOwnProcess(all, others)

export default defineConfig({
  test: {
    globalSetup: ['tests/fakes/program.ts'],
    // Two cores with much to do: nothing here measures time.
    expect: { poll: { timeout: 10_000 } },
    // All cores: most tests wait, for disks, terminals and browsers.
    maxWorkers: Math.max(2, availableParallelism()),
    testTimeout: 30_000,
    hookTimeout: 60_000,
    sequence: { sequencer: Sequencer },
    projects: [
      { extends: true, test: { name: 'alone', include: alone } },
      {
        extends: true,
        test: { name: 'shared', include: [all], exclude: [...others, ...alone], isolate: false },
      },
    ],
  },
})
