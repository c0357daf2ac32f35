/**
 * Runs the named checks one after the other and ends with the line `N passed, N failed`.
 * `types` and `lint` count as one check each, so that the line is never all green when the exit code is not.
 */
import { spawnSync } from 'node:child_process'
import { mkdirSync, readFileSync, rmSync } from 'node:fs'
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

/** Says nothing but its name and time unless it fails. */
function quietly(name: string, command: string, args: string[]): Counts {
  const startedAt = performance.now()
  const { status, error, stdout, stderr } = spawnSync(command, args, { cwd: root, env, encoding: 'utf8' })
  const seconds = ((performance.now() - startedAt) / 1000).toFixed(1)
  const ok = status === 0
  if (!ok) console.log(error?.message ?? `${stdout}${stderr}`)
  console.log(` ${ok ? '✓' : '✗'} ${name} (${seconds} s)`)
  return ok ? { passed: 1, failed: 0 } : { passed: 0, failed: 1 }
}

function vitest(name: string, config: string): Counts {
  const reportFile = join(root, '.cache', `${name}.json`)
  mkdirSync(join(root, '.cache'), { recursive: true })
  rmSync(reportFile, { force: true })
  const reporters = ['--reporter=dot', '--reporter=json', `--outputFile.json=${reportFile}`]
  const { status } = spawnSync('vitest', ['run', '--config', config, ...reporters], {
    cwd: root,
    env,
    stdio: 'inherit',
  })
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
  // A file that does not even load has no tests to count.
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
    sum(quietly('types', 'tsc', ['--noEmit']), quietly('types of web', 'tsc', ['--noEmit', '-p', 'web'])),
  lint: () => quietly('lint', 'biome', ['check', '.']),
  web: () => quietly('control room', 'node', ['scripts/build-web.ts']),
  tests: () => vitest('tests', 'vitest.config.ts'),
  long: () => vitest('long', 'vitest.long.config.ts'),
  agents: () => vitest('agents', 'vitest.agents.config.ts'),
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
