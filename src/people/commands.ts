import { type CommandEntry, commandEntry, receiptOf } from '../commands/commands.ts'
import { personBehind } from '../commands/team.ts'
import { decideCommand } from './api.ts'
import type { Verdicts } from './verdicts.ts'

export const peopleCommands = (verdicts: () => Pick<Verdicts, 'checkAnswer' | 'decide'>): CommandEntry[] => [
  // Moderators decide on moderation, so the role is checked with the request.
  commandEntry(decideCommand, {
    forEveryRole: true,
    async perform({ team, speaker, commit }, { id, ...verdict }) {
      const person = personBehind(team, speaker.principal)!
      const objection = await verdicts().checkAnswer(person, id, verdict)
      return await commit(async ({ unsigned }) => {
        if (objection !== undefined) return objection
        const decided = await verdicts().decide(unsigned, person, id, verdict)
        if (!decided.ok) return decided.error
        const { request, receipt } = decided.value
        return receiptOf(decideCommand, `${request.id} ${request.state}`, { request, receipt })
      })
    },
  }),
]
