/**
 * Runs the named checks one after the other and ends with the line `N passed, N failed`.
 * `types` and `lint` count as one check each, so that the line is never all green when the exit code is not.
 */
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'

type Counts = { passed: number; failed: number }

/** The part of vitest's JSON report that is read here. */
type Report = {
  numPassedTests: number
  numFailedTests: number
  success: boolean
  testResults: { name: string; status: string; assertionResults: unknown[] }[]
}

const root = join(import.meta.dirname, '..')
const env: NodeJS.ProcessEnv = {
  ...process.env,
  PATH: `${join(root, 'node_modules/.bin')}${delimiter}${process.env.PATH}`,
  ...(process.stdout.isTTY ? {} : { NO_COLOR: '1' }),
}

/** Prints only its name and time unless it fails. */
function quietly(name: string, command: string, args: string[]): Counts {
  const startedAt = performance.now()
  const { status, error, stdout, stderr } = spawnSync(command, args, { cwd: root, env, encoding: 'utf8' })
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
  const ok = status === 0
  if (!ok) console.log(error?.message ?? `${stdout}${stderr}`)
  console.log(` ${ok ? '✓' : '✗'} ${name} (${seconds} s)`)
  return ok ? { passed: 1, failed: 0 } : { passed: 0, failed: 1 }
}

const INTERRUPTED = 130
const ignore = () => {}

const SHARED_MEMORY = '/dev/shm'
const ENOUGH_BYTES = 4 * 1024 ** 3

/**
 * The folder for the tests' files: in memory if there is enough and programs may run from it. Tests create and
 * remove thousands of stores, and none of them, kill -9 included, needs a real disk.
 */
function scratch(): string | undefined {
  if (process.env.TMPDIR !== undefined) return undefined
  let folder: string | undefined
  try {
    const { bavail, bsize } = statfsSync(SHARED_MEMORY)
    if (bavail * bsize < ENOUGH_BYTES) return undefined
    folder = mkdtempSync(join(SHARED_MEMORY, 'o-'))
    // Readable by every user, since PostgreSQL doesn't run as root.
    chmodSync(folder, 0o1777)
    const program = join(folder, 'try')
    writeFileSync(program, '#!/bin/sh\n', { mode: 0o755 })
    if (spawnSync(program).status === 0) return folder
  } catch {
    // There is no such folder, or we may not use it.
  }
  if (folder !== undefined) rmSync(folder, { recursive: true })
  return undefined
}

interface SuiteOptions {
  inMemory?: boolean
  variables?: Record<string, string>
}

function vitest(
  name: string,
  config: string,
  { inMemory = true, variables = {} }: SuiteOptions = {},
): Counts {
  const reportFile = join(root, '.cache', `${name}.json`)
  mkdirSync(join(root, '.cache'), { recursive: true })
  rmSync(reportFile, { force: true })
  const reporters = ['--reporter=dot', '--reporter=json', `--outputFile.json=${reportFile}`]
  const folder = inMemory ? scratch() : undefined
  // Ctrl-C ends the tests; afterwards their files in memory are removed here.
  process.on('SIGINT', ignore)
  const { status, signal } = spawnSync('vitest', ['run', '--config', config, ...reporters], {
    cwd: root,
    env: { ...env, ...variables, ...(folder === undefined ? {} : { TMPDIR: folder }) },
    stdio: 'inherit',
  })
  if (folder !== undefined) rmSync(folder, { recursive: true, force: true })
  process.off('SIGINT', ignore)
  if (signal !== null || status === INTERRUPTED) process.exit(INTERRUPTED)
  const counts = readCounts(reportFile)
  // An error outside any test (an unhandled rejection, say) fails the run although every test passed.
  if (status !== 0 && counts.failed === 0) counts.failed = 1
  return counts
}

function readCounts(reportFile: string): Counts {
  let report: Report
  try {
    report = JSON.parse(readFileSync(reportFile, 'utf8'))
  } catch {
    return { passed: 0, failed: 1 }
  }
  // A file that fails to load has no tests to count.
  const unloadable = report.testResults.filter(
    (file) => file.status === 'failed' && file.assertionResults.length === 0,
  )
  return { passed: report.numPassedTests, failed: report.numFailedTests + unloadable.length }
}

function sum(one: Counts, other: Counts): Counts {
  return { passed: one.passed + other.passed, failed: one.failed + other.failed }
}

const CHECKS: Record<string, () => Counts> = {
  types: () =>
    [
      quietly('types', 'tsc', ['--noEmit']),
      quietly('types of the package', 'tsc', ['--noEmit', '-p', 'tsconfig.build.json']),
      quietly('types of web', 'tsc', ['--noEmit', '-p', 'web']),
    ].reduce(sum),
  lint: () => quietly('lint', 'biome', ['check', '.']),
  web: () => quietly('control room', 'node', ['scripts/build-web.ts']),
  unit: () => vitest('unit', 'vitest.config.ts', { variables: { ORCHUB_TESTS: 'unit' } }),
  tests: () => vitest('tests', 'vitest.config.ts'),
  long: () => vitest('long', 'vitest.long.config.ts'),
  // On disk, because agent programs may treat other folders differently.
  agents: () => vitest('agents', 'vitest.agents.config.ts', { inMemory: false }),
}

const total: Counts = { passed: 0, failed: 0 }
for (const name of process.argv.slice(2)) {
  const check = CHECKS[name]
  if (!check) throw new Error(`Unknown check: ${name}. There are: ${Object.keys(CHECKS).join(', ')}`)
  const { passed, failed } = check()
  total.passed += passed
  total.failed += failed
}
console.log(`${total.passed} passed, ${total.failed} failed`)
process.exitCode = total.failed === 0 ? 0 : 1
