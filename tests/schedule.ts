/**
 * Which suite a test file belongs to, which files share a process, and which go first.
 *
 *   unit    starts no other process and no GitHub team: `npm run test:unit`, in a minute
 *   test    unit and everything else that isn't slow: `npm test`, in five minutes
 *   long    browsers, the command line with its services, kill -9 loops, the packed tarball: `npm run test:long`
 *   agents  the real agent programs: `npm run test:agents`
 *
 * Loading the product takes most of a second of CPU time, and code that has run before runs faster, so files that
 * don't change their process share one.
 */
import { existsSync, globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

const ROOT = join(import.meta.dirname, '..')

export const ALL = 'tests/**/*.test.ts'
export const REAL_AGENTS = 'tests/real-agents/**'

/** Files of the long suite. A folder is slow as a whole; single files are named where the rest of their folder is quick. */
export const LONG = [
  'tests/long/**',
  'tests/web/**',
  'tests/cli/**',
  'tests/examples/**',
  'tests/set-up.test.ts',
  'tests/runs/core/linear.test.ts',
  'tests/runs/core/graphs.test.ts',
  'tests/runs/graphs.test.ts',
  'tests/store/mailbox-model.test.ts',
  'tests/github/reviews.test.ts',
]

/** Fixtures that start another process, or the whole service with a model server and a fake GitHub. */
const HEAVY = [
  'tests/web/browser.ts',
  'tests/fakes/postgres-server.ts',
  'tests/fakes/daemon.ts',
  'tests/runtimes/tmux-fixture.ts',
  'tests/cli/orc.ts',
  'tests/runs/harness.ts',
  'tests/github/harness.ts',
]

/** Files that need no fixture of HEAVY, however indirectly, and aren't slow. */
export function unitFiles(): string[] {
  const known = new Map<string, boolean>()
  const isHeavy = (file: string): boolean => {
    const seen = known.get(file)
    if (seen !== undefined) return seen
    known.set(file, false)
    const source = existsSync(join(ROOT, file)) ? readFileSync(join(ROOT, file), 'utf8') : ''
    const imported = [...source.matchAll(/from '(\.[^']+)'/g)].map(([, path]) => join(dirname(file), path!))
    const heavy = HEAVY.includes(file) || imported.some((path) => path.startsWith('tests/') && isHeavy(path))
    known.set(file, heavy)
    return heavy
  }
  const folders = ['tests/programs/**', 'tests/runtimes/**', 'tests/store/postgres/**']
  return globSync(ALL, { cwd: ROOT, exclude: [...LONG, REAL_AGENTS, ...folders] })
    .filter((file) => !isHeavy(file))
    .sort()
}

/** Signs that a file changes or measures its whole process. */
const OF_THE_PROCESS = [
  /\bvi\.(?:mock|doMock|hoisted|resetModules|stubGlobal|stubEnv|useFakeTimers)\(/,
  /\bspyOn\((?:[A-Z]\w*|process|performance|globalThis|console)\b/,
  /\bprocess\.(?:chdir|umask|sete?uid|on|once|memoryUsage|cpuUsage|hrtime)\b/,
  /\bprocess\.env(?:\.\w+|\[[^\]]+\]) = |\bdelete process\.env\b/,
  /\bperformance\.now\(|\bglobal\.gc\b/,
]

export const needsOwnProcess = (text: string) => OF_THE_PROCESS.some((mark) => mark.test(text))

/** Splits files into those that get a process of their own and those that share one. */
export function splitByProcess(files: readonly string[]): { alone: string[]; shared: string[] } {
  const alone = files.filter((file) => needsOwnProcess(readFileSync(join(ROOT, file), 'utf8')))
  return { alone, shared: files.filter((file) => !alone.includes(file)) }
}

/** A fresh clone has no times of an earlier run: these files take longest, the longest first. */
const SLOW = [
  'real-agents/scenarios',
  'real-agents/acp',
  'real-agents/exchange',
  'real-agents/survival/opencode',
  'real-agents/delegation',
  'real-agents/survival/gemini',
  'real-agents/survival/claude-code-2.1.197',
  'real-agents/survival/claude-code',
  'real-agents/smoke',
  'real-agents/survival/codex',
  'real-agents/claude-code',
  'real-agents/runs',
  'real-agents/gemini',
  'long/package',
  'long/delegation-crash',
  'long/crash',
  'long/delegation-many',
  'runs/core/linear',
  'runs/graphs',
  'cli/commands/runs/resume',
  'cli/commands/github/github',
  'store/postgres',
  'runs/core/graphs',
  'web/all-views',
  'web/phone',
  'programs/claude-code/session',
  'cli/commands/service/help',
  'cli/inspect',
  'web/xss',
  'web/failures',
  'cli/commands/workspaces/workspace',
  'runs/runs',
  'cli/commands/agents',
  'agents/routes/terminals',
  'cli/first-use',
  'runtimes/tmux/paste',
  'yaml/yaml',
  'github/context',
]

/**
 * Files with a process of their own go first, because a shared process is only kept while the next file shares it too.
 * Slow files come before quick ones, so that no worker is left with one at the end.
 */
export class Sequencer extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files)
    const rank = ({ moduleId, project }: TestSpecification) => {
      const slow = SLOW.findIndex((name) => moduleId.endsWith(`/tests/${name}.test.ts`))
      return (project.config.isolate ? 0 : 1000) + (slow < 0 ? SLOW.length : slow)
    }
    return sorted.toSorted((one, other) => rank(one) - rank(other))
  }
}
