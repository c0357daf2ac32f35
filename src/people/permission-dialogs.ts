/**
 * Turns the permission dialogs of agent programs into requests that people can answer from anywhere (C9).
 *
 * States of a dialog that its program describes:
 * - open: `ask` stored a request and waits for its verdict (`waiting`). Left when a person decides, when the request
 *   expires, or when the dialog closes in the terminal, which withdraws the request.
 * - orphaned: the service restarted, and the request is still open (`orphans`). Left when the same dialog asks again and
 *   takes the request over, or after ASK_AGAIN_MS, which withdraws it.
 *
 * States of an agent that waits at a dialog which its program does not describe:
 * - unexplained: for UNEXPLAINED_MS after `watch(agent, true)`, the time in which a program would describe its dialog.
 * - announced: a notice in the inbox asks people to answer in the terminal (`notices`). `watch(agent, false)` and a
 *   restart withdraw it.
 */
import { AppError } from '../base/errors.ts'
import { formatId } from '../base/ids.ts'
import type { PermissionQuestion, PermissionVerdict } from '../runtimes/runtime.ts'
import type { Store, Tx } from '../store/store.ts'
import type { Timers } from '../store/timers.ts'
import type { HeldInTasks } from './hold-command.ts'
import {
  APPROVAL_MS,
  askPeople,
  findHumanRequest,
  type HumanRequestRow,
  openRequestsOf,
  withdrawHumanRequest,
} from './people.ts'

export interface PermissionDialogs {
  /** Resolves with the verdict; undefined if the dialog closed or the request expired. */
  ask(agent: string, question: PermissionQuestion, gone: AbortSignal): Promise<PermissionVerdict | undefined>
  /** Throws if the dialog of the request is no longer open. */
  checkOpen(row: HumanRequestRow): void
  decided(request: number, verdict: PermissionVerdict | undefined): void
  /** Reports whether the agent waits at a dialog in its terminal. */
  watch(agent: string, isWaiting: boolean): void
  /** Called when a session begins: its dialogs take over the open requests of the previous session. */
  begin(agent: string): Promise<void>
}

interface PermissionDialogsOptions {
  store: Store
  timers: Timers
  redact(text: string): string
  after(ms: number, callback: () => void): () => void
  about: HeldInTasks['about']
}

/** After a restart, a dialog that is still open asks again within this time. */
const ASK_AGAIN_MS = 15_000
/** Programs that describe their dialogs do so at once. */
const UNEXPLAINED_MS = 1500
/** Characters of a tool's input in the question. */
const MAX_SHOWN = 200
/** The context of notices about dialogs in a terminal. */
const AT_TERMINAL = '{"terminal":true}'

export function createPermissionDialogs({
  store,
  timers,
  redact,
  after,
  about,
}: PermissionDialogsOptions): PermissionDialogs {
  const waiting = new Map<number, (verdict: PermissionVerdict | undefined) => void>()
  /** How many dialogs each agent has open. */
  const asking = new Map<string, number>()
  const unexplained = new Map<string, () => void>()
  const notices = new Map<string, number>()
  const waitingAtTerminal = new Set<string>()
  /** Open requests from before a restart, by agent and key of the dialog. */
  const orphans = new Map<string, Map<string, number>>()

  async function open(agent: string, question: PermissionQuestion): Promise<number> {
    return await store.write(async (tx) => {
      const { key } = await askPeople(tx, {
        kind: 'approval',
        purpose: 'permission',
        asker: agent,
        question: `${agent} wants to use ${question.tool}: ${shown(question.input, redact)}`,
        reason: question.reason ?? `the program of ${agent} asks for permission`,
        action: { type: question.tool, fields: question.input },
        context: JSON.stringify({ key: question.key }),
        expiresAt: tx.now + APPROVAL_MS,
        timers,
        text: `${agent} wants to use ${question.tool}`,
        about: async (id) => ({
          tool: question.tool,
          ...(await about(tx, { id, asker: agent, context: '{}' })),
        }),
      })
      return key
    })
  }

  /** Returns the request that the same dialog made before a restart. */
  function takeOver(agent: string, dialog: string): number | undefined {
    const key = orphans.get(agent)?.get(dialog)
    orphans.get(agent)?.delete(dialog)
    return key
  }

  async function withdraw(key: number, why: string) {
    await store.write((tx) => withdrawIn(tx, key, why))
  }

  async function withdrawIn(tx: Tx, key: number, why: string) {
    const row = await findHumanRequest(tx, key)
    if (row === undefined) return
    const data = await about(tx, { ...row, id: formatId('req', key) })
    await withdrawHumanRequest(tx, row, { why, comment: why, subject: row.asker, data: { ...data } })
  }

  async function notice(agent: string) {
    const key = await store.write(async (tx) => {
      const { key } = await askPeople(tx, {
        kind: 'escalation',
        purpose: 'notice',
        asker: agent,
        question: `${agent} waits for an answer in its terminal: orc attach ${agent}`,
        reason: 'its program shows a dialog without describing it',
        context: AT_TERMINAL,
        text: `${agent} waits for an answer in its terminal`,
        about: (id) => about(tx, { id, asker: agent, context: AT_TERMINAL }),
      })
      return key
    })
    // The dialog may have closed while this was written.
    if (waitingAtTerminal.has(agent)) notices.set(agent, key)
    else await withdraw(key, 'it was answered in the terminal')
  }

  return {
    async ask(agent, question, gone) {
      if (gone.aborted) return undefined
      const { promise, resolve } = Promise.withResolvers<PermissionVerdict | undefined>()
      asking.set(agent, (asking.get(agent) ?? 0) + 1)
      try {
        const key = takeOver(agent, question.key) ?? (await open(agent, question))
        waiting.set(key, resolve)
        const leave = () => resolve(undefined)
        gone.addEventListener('abort', leave, { once: true })
        if (gone.aborted) leave()
        const verdict = await promise
        waiting.delete(key)
        gone.removeEventListener('abort', leave)
        if (verdict === undefined)
          await withdraw(key, 'it was answered in the terminal, or the dialog is gone')
        return verdict
      } finally {
        asking.set(agent, asking.get(agent)! - 1)
      }
    },
    checkOpen(row) {
      if (waiting.has(row.id)) return
      throw new AppError('CONFLICT', `The dialog of ${formatId('req', row.id)} can't be answered from here`, {
        hint: `Answer it in its terminal: orc attach ${row.asker}`,
      })
    },
    decided(request, verdict) {
      waiting.get(request)?.(verdict)
    },
    watch(agent, isWaiting) {
      unexplained.get(agent)?.()
      unexplained.delete(agent)
      if (isWaiting) waitingAtTerminal.add(agent)
      else waitingAtTerminal.delete(agent)
      const shownNotice = notices.get(agent)
      if (!isWaiting && shownNotice !== undefined) {
        notices.delete(agent)
        void withdraw(shownNotice, 'it was answered in the terminal').catch(() => {})
      }
      if (!isWaiting || shownNotice !== undefined) return
      unexplained.set(
        agent,
        after(UNEXPLAINED_MS, () => {
          unexplained.delete(agent)
          if ((asking.get(agent) ?? 0) === 0) void notice(agent).catch(() => {})
        }),
      )
    },
    async begin(agent) {
      const open = await openRequestsOf(store, agent)
      for (const { id, purpose, context } of open) {
        const isNotice = purpose === 'notice' && context === AT_TERMINAL
        // The notice comes again if the agent still waits.
        if (isNotice && notices.get(agent) !== id) await withdraw(id, 'the service was restarted')
      }
      const left = open.filter(({ id, purpose }) => purpose === 'permission' && !waiting.has(id))
      if (left.length === 0) return
      orphans.set(agent, new Map(left.map((row) => [dialogOf(row), row.id])))
      after(ASK_AGAIN_MS, () => {
        const gone = [...(orphans.get(agent)?.values() ?? [])]
        orphans.delete(agent)
        for (const key of gone) {
          void withdraw(key, 'its dialog was gone after a restart of the service').catch(() => {})
        }
      })
    },
  }
}

function dialogOf(row: HumanRequestRow): string {
  return (JSON.parse(row.context) as { key: string }).key
}

/** The most informative part of a tool's input; the action of the request has all of it. */
function shown(input: PermissionQuestion['input'], redact: (text: string) => string): string {
  const part = input.command ?? input.cmd ?? input.file_path ?? input.path ?? input.url
  const text = typeof part === 'string' ? part : JSON.stringify(part ?? input)
  const clean = redact(text.slice(0, 8192)).replace(/\s+/g, ' ')
  return clean.length > MAX_SHOWN ? `${clean.slice(0, MAX_SHOWN)}…` : clean
}
