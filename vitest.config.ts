import { globSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { defineConfig } from 'vitest/config'
import { ALL, LONG, REAL_AGENTS, Sequencer, splitByProcess, unitFiles } from './tests/schedule.ts'

/** `npm test`; with ORCHUB_TESTS=unit only the unit tests. */
const files =
  process.env.ORCHUB_TESTS === 'unit'
    ? unitFiles()
    : globSync(ALL, { cwd: import.meta.dirname, exclude: [...LONG, REAL_AGENTS] }).sort()
const { alone, shared } = splitByProcess(files)

export default defineConfig({
  test: {
    globalSetup: ['tests/fakes/program.ts'],
    // Generous, because two cores are busy and nothing here measures time.
    expect: { poll: { timeout: 10_000 } },
    // Most tests wait for disks, terminals and other processes.
    maxWorkers: Math.max(2, availableParallelism()),
    testTimeout: 30_000,
    hookTimeout: 60_000,
    sequence: { sequencer: Sequencer },
    projects: [
      { extends: true, test: { name: 'alone', include: alone } },
      { extends: true, test: { name: 'shared', include: shared, isolate: false } },
    ],
  },
})
