import type { Dependency } from '../plan.ts'
import type { NodeTimer, RunNode, RunOutcome } from '../run.ts'
import type { Run } from './run-state.ts'

/** Carried out in the transaction that stores the run: what the database can do. */
export type StoreEffect =
  /** Of the run itself where there is no node. */
  | { type: 'set_timer'; node: string | null; kind: NodeTimer | 'run'; at: number }
  | { type: 'clear_timer'; node: string | null; kind: NodeTimer | 'run' }
  /** `awaits` false: a notice (C7). Otherwise the verdict comes back with this number. */
  | { type: 'ask_person'; node: string; ask: number; text: string; awaits: boolean; expiresAt: number | null }
  /** The question is moot. */
  | { type: 'withdraw'; node: string; ask: number }
  /** For the audit. */
  | { type: 'note'; node: string | null; text: string }
  | { type: 'run_ended'; outcome: RunOutcome }

/** An attempt that came before, for whoever tries next. */
export interface Before {
  attempt: number
  why: string
}

/** Outputs to be copied: of which attempt, which, and where to. */
export interface Source extends Pick<Dependency, 'agent' | 'outputs' | 'copyTo'> {
  outputsHash: string
}

/**
 * Carried out after the commit; what of it is not done yet can be told from the stored run (`pendingEffects`). Each is
 * answered by a happening, and safe to repeat under its key.
 */
export type OutsideEffect =
  /**
   * Copy inputs and the outputs of dependencies into the inbox, and say the hash of it all. `missing`: dependencies
   * without outputs. `checkKept`: an earlier result stands; its outbox is only looked at. Answer: inputs_copied, copy_failed.
   */
  | {
      type: 'prepare'
      node: string
      preparation: number
      sources: readonly Source[]
      missing: readonly string[]
      checkKept: boolean
    }
  /** Put aside what the attempt before left (error_report.md, partial/), and start. Answer: started, exited. */
  | { type: 'start_attempt'; node: string; attempt: number; before: Before | null }
  /** See to it that status.json and the process are followed. Answer: status, active, exited. */
  | { type: 'follow_attempt'; node: string; attempt: number }
  /** `finished`: it said so, and may end by itself. Answer: exited. */
  | { type: 'stop_attempt'; node: string; attempt: number; finished: boolean }
  /** In the order of C22. Answer: validated. */
  | { type: 'validate'; node: string; attempt: number }
  /** Give the error report and the inputs to the fixer. Answer: fixer_done. */
  | { type: 'fix'; node: string; fix: number; fixer: string; before: Before }
  | { type: 'stop_fix'; node: string; fix: number }
  /** Consolidate outputs and write the report. Answer: report_written, report_failed. */
  | { type: 'write_report'; round: number }

/** The same key never stands for two effects. */
export type Keyed<E> = E & { key: string }
export type Effect = Keyed<StoreEffect> | Keyed<OutsideEffect>

/** Reads nodes as they will be once the decision is stored. */
export type ReadNode = (name: string) => RunNode

/**
 * What the world outside still owes the run, told from stored state alone: nothing is lost between the commit and the
 * deed, and no second list has to be kept. After a restart the engine carries out all of it again.
 */
export function pendingEffects(run: Run): Keyed<OutsideEffect>[] {
  const read: ReadNode = (name) => run.nodes.get(name)!
  const ofNodes = [...run.nodes.values()].flatMap((node) => pendingOf(run, node, read))
  if (!run.head.reportOwed) return ofNodes
  const { id, round } = run.head
  return [...ofNodes, { type: 'write_report', key: `${id}/report/${round}`, round }]
}

/** Whether the run still waits for it. */
export function isOwed(run: Run, effect: Keyed<OutsideEffect>): boolean {
  if (effect.type === 'write_report') return run.head.reportOwed
  const pending = pendingOf(run, run.nodes.get(effect.node)!, (name) => run.nodes.get(name)!)
  return pending.some(({ key }) => key === effect.key)
}

export function pendingOf(run: Run, node: RunNode, read: ReadNode): Keyed<OutsideEffect>[] {
  const { name, attempt, state } = node
  const key = (what: string, number: number) => `${run.head.id}/${name}/${what}/${number}`
  const pending: Keyed<OutsideEffect>[] = []
  if (node.alive && state !== 'running') {
    const finished = state === 'validating' || state === 'completed'
    pending.push({ type: 'stop_attempt', key: key('stop', attempt), node: name, attempt, finished })
  }
  if (node.fixerAlive && state !== 'fixing') {
    pending.push({ type: 'stop_fix', key: key('stop-fix', node.fixes), node: name, fix: node.fixes })
  }
  switch (state) {
    case 'preparing':
      pending.push({ ...preparation(run, node, read), key: key('prepare', node.preparations) })
      break
    case 'running':
      if (node.started) {
        pending.push({ type: 'follow_attempt', key: key('follow', attempt), node: name, attempt })
      } else {
        const before = beforeOf(node, attempt)
        pending.push({ type: 'start_attempt', key: key('start', attempt), node: name, attempt, before })
      }
      break
    case 'validating':
      pending.push({ type: 'validate', key: key('validate', attempt), node: name, attempt })
      break
    case 'fixing': {
      const fixer = run.graph.agents.get(name)!.fixer!
      const before = { attempt, why: node.reason }
      pending.push({ type: 'fix', key: key('fix', node.fixes), node: name, fix: node.fixes, fixer, before })
    }
  }
  return pending
}

function preparation(run: Run, node: RunNode, read: ReadNode): Extract<OutsideEffect, { type: 'prepare' }> {
  const { dependsOn } = run.graph.agents.get(node.name)!
  const sources: Source[] = []
  const missing = new Set<string>()
  for (const { agent, outputs, copyTo } of dependsOn) {
    const { result, state } = read(agent)
    if (state !== 'completed' || result === null) missing.add(agent)
    else if (outputs.length > 0) sources.push({ agent, outputs, copyTo, outputsHash: result.outputsHash })
  }
  return {
    type: 'prepare',
    node: node.name,
    preparation: node.preparations,
    sources,
    missing: [...missing],
    checkKept: node.kept !== null,
  }
}

function beforeOf({ attempts }: RunNode, attempt: number): Before | null {
  const before = attempts.findLast(({ number }) => number < attempt)
  return before === undefined ? null : { attempt: before.number, why: before.why }
}

/** The timers a node needs, told from its state. */
export function timersOf({ due, stallAt }: RunNode): Partial<Record<NodeTimer, number>> {
  return { ...(due === null ? {} : { [due.kind]: due.at }), ...(stallAt === null ? {} : { stall: stallAt }) }
}
