import { type CommandEntry, commandEntry, receiptOf } from '../commands/commands.ts'
import { cancelRun, resumeRun, sendToRun, startRun } from './api.ts'
import type { Runs } from './runs.ts'

/** The commands by which people start, resume, cancel and write to runs. */
export const runCommands = (runs: Pick<Runs, 'start' | 'resume' | 'cancel' | 'send'>): CommandEntry[] => [
  commandEntry(startRun, { perform: (call, order) => runs.start(order, call) }),
  commandEntry(resumeRun, { perform: (call, { id, ...order }) => runs.resume(id, order, call) }),
  commandEntry(cancelRun, {
    async perform({ speaker }, { id, reason }) {
      const by = speaker.person!
      const details = await runs.cancel(id, by, reason ?? `${by} cancelled it`)
      return receiptOf(cancelRun, details.cancelled ? `${id} cancelled` : `${id} had ended already`, details)
    },
  }),
  commandEntry(sendToRun, {
    async perform({ speaker }, { id, ...message }) {
      const details = await runs.send(id, message, speaker.person!)
      return receiptOf(sendToRun, `messages/${details.file} written`, details)
    },
  }),
]
