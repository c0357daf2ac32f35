/**
 * Which test files share a process, and which go first. Loading the product takes most of a second of processor time,
 * and code that has run before runs faster: files that leave no mark on their process share one, one after the other.
 */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

const ROOT = join(import.meta.dirname, '..')

/** What is replaced or set for the whole process, and what is measured of it. */
const OF_THE_PROCESS = [
  /\bvi\.(?:mock|doMock|hoisted|resetModules|stubGlobal|stubEnv|useFakeTimers)\(/,
  /\bspyOn\((?:[A-Z]\w*|process|performance|globalThis|console)\b/,
  /\bprocess\.(?:chdir|umask|sete?uid|on|once|memoryUsage|cpuUsage|hrtime)\b/,
  /\bprocess\.env(?:\.\w+|\[[^\]]+\]) = |\bdelete process\.env\b/,
  /\bperformance\.now\(|\bglobal\.gc\b/,
]

export const needsOwnProcess = (text: string) => OF_THE_PROCESS.some((mark) => mark.test(text))

/** The files that get a process of their own. */
export function inOwnProcess(pattern: string, exclude: readonly string[] = []): string[] {
  return globSync(pattern, { cwd: ROOT, exclude: [...exclude] })
    .filter((file) => needsOwnProcess(readFileSync(join(ROOT, file), 'utf8')))
    .sort()
}

/** A clone has no times of an earlier run yet: these take longest, the longest first. */
const SLOW = [
  ...[
    'real-agents/scenarios',
    'real-agents/acp',
    'real-agents/exchange',
    'real-agents/survival/opencode',
    'real-agents/delegation',
  ],
  ...[
    'real-agents/survival/gemini',
    'real-agents/survival/claude-code-2.1.197',
    'real-agents/survival/claude-code',
  ],
  ...[
    'real-agents/smoke',
    'real-agents/survival/codex',
    'real-agents/claude-code',
    'real-agents/runs',
    'real-agents/gemini',
  ],
  ...['long/package', 'long/delegation-crash', 'long/crash', 'long/delegation-many'],
  ...[
    'cli/commands/github/github',
    'programs/claude-code/session',
    'cli/commands/runs/run',
    'cli/commands/service/stop-signals',
    'runtimes/tmux/paste',
    'web/xss',
  ],
  ...['store/mailbox-model', 'cli/commands/tasks/ask', 'tasks/routes/hostile', 'cli/commands/service/serve'],
  ...[
    'web/robust',
    'web/session',
    'runtimes/tmux/delivery',
    'runtimes/tmux/survival',
    'cli/commands/service/help',
  ],
]

/**
 * Those in a process of their own first: a shared one is only kept while the next file shares it too. Then what takes
 * long, so that no worker sits over it at the end while the others have nothing to do.
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
