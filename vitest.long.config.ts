import { globSync } from 'node:fs'
import { defineConfig } from 'vitest/config'
import { LONG, Sequencer, splitByProcess } from './tests/schedule.ts'

const root = import.meta.dirname
const minutes = globSync('tests/long/**/*.test.ts', { cwd: root }).sort()
const slow = globSync(
  LONG.map((pattern) => pattern.replace(/\*\*$/, '**/*.test.ts')),
  { cwd: root, exclude: ['tests/long/**'] },
).sort()
const { alone, shared } = splitByProcess(slow)

/** `npm run test:long`: browsers, the command line, kill -9 loops, the packed tarball. */
export default defineConfig({
  test: {
    globalSetup: ['tests/fakes/program.ts'],
    // Generous, because two cores are busy and nothing here measures time.
    expect: { poll: { timeout: 10_000 } },
    maxWorkers: 2,
    sequence: { sequencer: Sequencer },
    projects: [
      {
        extends: true,
        test: { name: 'minutes', include: minutes, testTimeout: 900_000, hookTimeout: 120_000 },
      },
      { extends: true, test: { name: 'alone', include: alone, testTimeout: 30_000, hookTimeout: 60_000 } },
      {
        extends: true,
        test: { name: 'shared', include: shared, isolate: false, testTimeout: 30_000, hookTimeout: 60_000 },
      },
    ],
  },
})
