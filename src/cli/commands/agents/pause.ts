import { actionVerb } from './action.ts'

export const verb = actionVerb('pause_session', {
  name: 'pause',
  summary: 'hold deliveries to an agent; nothing it does is interrupted',
})
