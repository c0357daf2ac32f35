import { type SpentTotals, spentOnTask, spentOnTasks } from '../../agents/usage.ts'
import type { AnswerOf } from '../../api/contract.ts'
import { formatId, parseId } from '../../base/ids.ts'
import type { Reader } from '../../store/store.ts'
import { descendantsOf } from '../core/tree.ts'
import { treeOf } from '../store/tasks.ts'
import type { Task } from '../task.ts'

type SpendingDetail = Pick<AnswerOf<'task'>, 'spent' | 'spending' | 'spent_below'>

const keysOf = (tasks: readonly Task[]) => tasks.map(({ id }) => parseId('task', id)!).sort((a, b) => a - b)

/** Agents whose spending the caller may not see: the cost of a text shows how much an agent said about it (S3.15). */
type IsHidden = (agent: string) => boolean

/** Spending by task id. */
export async function spentOn(
  reader: Reader,
  tasks: readonly Task[],
  isHidden: IsHidden,
): Promise<Map<string, SpentTotals>> {
  const rows = await spentOnTasks(reader, keysOf(tasks.filter(({ agent }) => !isHidden(agent))))
  return new Map(rows.map(({ task, ...spent }) => [formatId('task', task), spent]))
}

/** Spending on one task by agent, and on all tasks below it. */
export async function spendingOf(reader: Reader, task: Task, isHidden: IsHidden): Promise<SpendingDetail> {
  const all = isHidden(task.agent) ? [] : await spentOnTask(reader, parseId('task', task.id)!)
  const spending = all.filter(({ agent }) => !isHidden(agent))
  const below = task.delegations === 0 ? [] : descendantsOf(await treeOf(reader, task.root), task.id)
  const spent = sumOf(spending)
  const seen = isHidden(task.agent) ? [] : below.filter(({ agent }) => !isHidden(agent))
  const spentBelow = sumOf(await spentOnTasks(reader, keysOf(seen)))
  return {
    spending,
    ...(spent === undefined ? {} : { spent }),
    ...(spentBelow === undefined ? {} : { spent_below: spentBelow }),
  }
}

const SUMMED = ['answers', 'input', 'output', 'cache_read', 'cache_write', 'cost', 'unpriced'] as const

function sumOf(rows: readonly SpentTotals[]): SpentTotals | undefined {
  if (rows.length === 0) return undefined
  const sums = SUMMED.map((key) => [key, rows.reduce((sum, row) => sum + row[key], 0)])
  return Object.fromEntries(sums) as SpentTotals
}
