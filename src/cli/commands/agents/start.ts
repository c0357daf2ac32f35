import { actionVerb } from './action.ts'

export const verb = actionVerb('spawn_agent', {
  name: 'spawn',
  summary: 'start an agent; it takes up its last conversation',
})
