import type { RunNode } from '../run.ts'

const NONE = Object.freeze([])

/** What most nodes have nothing of. */
const EMPTY = Object.freeze({
  waitingFor: 0,
  queued: null,
  preparations: 0,
  attempt: 0,
  fixes: 0,
  asks: 0,
  tries: 0,
  fixed: 0,
  corrected: false,
  losses: 0,
  alive: false,
  fixerAlive: false,
  started: false,
  said: 'pending',
  due: null,
  stallAt: null,
  progress: null,
  inputsHash: null,
  cached: false,
  kept: null,
  result: null,
  attempts: NONE,
  reason: '',
  because: null,
  readyAt: null,
  settledAt: null,
} satisfies Partial<RunNode>)

const KEYS = Object.keys(EMPTY) as (keyof typeof EMPTY)[]

/** A node as its row keeps it: what is empty is left out, so that a field that a newer version brings has its empty value. */
export function writeNode(node: RunNode): string {
  const kept: Record<string, unknown> = { name: node.name, state: node.state }
  for (const key of KEYS) {
    const value = node[key]
    if (value === EMPTY[key] || (key === 'attempts' && node.attempts.length === 0)) continue
    kept[key] = value
  }
  return JSON.stringify(kept)
}

export function readNode(document: string): RunNode {
  return { ...EMPTY, ...(JSON.parse(document) as Pick<RunNode, 'name' | 'state'>) }
}
