import { actionVerb } from './action.ts'

export const verb = actionVerb('reset_session', {
  name: 'reset',
  summary: 'begin a new conversation with an agent, with its role restored',
})
