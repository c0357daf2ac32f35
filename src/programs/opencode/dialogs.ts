import { setTimeout as sleep } from 'node:timers/promises'
import type { PermissionQuestion, PermissionVerdict, SessionPort } from '../../runtimes/runtime.ts'
import type { PermissionRequest, QuestionRequest } from './records.ts'
import { type OpenCodeServer, ServerError } from './server.ts'

const RETRY_MS = 500

interface OpenCodeDialog {
  readonly conversation: string
  readonly controller: AbortController
  /** Closes the dialog on the screen when its turn has ended. */
  dismiss(): Promise<unknown>
}

interface OpenCodeDialogOptions {
  readonly server: OpenCodeServer
  readonly port: Pick<SessionPort, 'askPermission'>
  /** Number of open dialogs. */
  changed(count: number, evidence: string): void
  isSubagent(conversation: string): boolean
}

/** Permissions and questions that wait for a person, in the pane and outside at once. */
export function createDialogs({ server, port, changed, isSubagent }: OpenCodeDialogOptions) {
  const open = new Map<string, OpenCodeDialog>()

  function add(
    id: string,
    dialog: Omit<OpenCodeDialog, 'controller'>,
    question: PermissionQuestion,
    answer: OpenCodeDialogAnswer,
  ) {
    if (open.has(id)) return
    const controller = new AbortController()
    open.set(id, { ...dialog, controller })
    changed(open.size, `it asks for permission: ${question.tool} (${id})`)
    void port.askPermission(question, controller.signal).then(async (verdict) => {
      if (verdict !== undefined) await retryWhileOpen(id, () => answer(verdict))
    })
  }

  /** Retries while the dialog is open, so that a lost connection loses no verdict. */
  async function retryWhileOpen(id: string, act: () => Promise<unknown>) {
    while (open.has(id)) {
      try {
        await act()
        return
      } catch (error) {
        if (error instanceof ServerError && error.status === 404) return remove(id, `${id} no longer exists`)
        await sleep(RETRY_MS)
      }
    }
  }

  function remove(id: string, evidence: string) {
    const dialog = open.get(id)
    if (dialog === undefined) return
    open.delete(id)
    dialog.controller.abort()
    changed(open.size, evidence)
  }

  return {
    permission(request: PermissionRequest) {
      const { id, sessionID, permission, patterns, metadata } = request
      const reject = (message?: string) => server.replyPermission(id, 'reject', message)
      const question: PermissionQuestion = {
        key: id,
        tool: permission,
        input: { ...metadata, patterns },
        ...(isSubagent(sessionID) ? { reason: 'One of its subagents asks.' } : {}),
      }
      add(id, { conversation: sessionID, dismiss: () => reject() }, question, ({ allow, comment }) =>
        // Without a message, opencode ends the turn and the agent never learns of the refusal.
        allow ? server.replyPermission(id, 'once') : reject(comment ?? 'A person denied it.'),
      )
    },
    question(request: QuestionRequest) {
      const { id, sessionID, questions } = request
      const question: PermissionQuestion = {
        key: id,
        tool: 'question',
        input: { questions },
        reason: 'Approve with the answer as comment; rejecting dismisses the question.',
      }
      const dismiss = () => server.rejectQuestion(id)
      add(id, { conversation: sessionID, dismiss }, question, ({ allow, comment }) =>
        allow
          ? server.answerQuestion(
              id,
              questions.map(() => [comment ?? 'Yes']),
            )
          : dismiss(),
      )
    },
    /** The dialog was answered, here or in the pane. */
    closed: (id: string, evidence: string) => remove(id, evidence),
    /** Closes all dialogs that the server no longer lists. */
    keepOnly(ids: ReadonlySet<string>) {
      for (const id of [...open.keys()])
        if (!ids.has(id)) remove(id, `${id} was answered while the connection was lost`)
    },
    /** An aborted turn leaves its dialogs on the screen, where they would catch the next keys. */
    turnEnded(conversation: string) {
      for (const [id, dialog] of open) {
        if (dialog.conversation === conversation) void retryWhileOpen(id, dialog.dismiss)
      }
    },
    /** The program ended, or is no longer followed. */
    close(evidence: string) {
      for (const id of [...open.keys()]) remove(id, evidence)
    },
  }
}

type OpenCodeDialogAnswer = (verdict: PermissionVerdict) => Promise<unknown>
