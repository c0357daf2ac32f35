import { describe, expect, it } from 'vitest'
import { changesOf, editable, unreadableFields } from '../../../../web/src/views/people/edited-fields.ts'

describe('an edited action', () => {
  it('sends changed fields only, and rejects invalid JSON where a field was not text', () => {
    const fields = { reason: 'done', labels: ['a'], count: 1 }
    const request = { action: { fields } }
    const edited = editable(request)
    expect([unreadableFields(request, edited), changesOf(request, edited)]).toEqual([[], {}])
    const broken = { ...edited, reason: '{not JSON, but text', labels: '["a", ' }
    expect(unreadableFields(request, broken)).toEqual(['labels'])
    expect(changesOf(request, { ...edited, labels: '["b"]', count: '2' })).toEqual({
      labels: ['b'],
      count: 2,
    })
  })
})
