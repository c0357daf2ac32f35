import { actionVerb } from '../action.ts'

export const verb = actionVerb('terminate_agent', {
  name: 'stop',
  summary: 'stop an agent and everything it started; it stays stopped until it is spawned',
})
