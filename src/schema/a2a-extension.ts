/**
 * What a Rivulet server says beside A2A. A client that names the cursor in `A2A-Extensions` gets the position of each frame
 * in its metadata; one that sends a position back gets the frames after it. The others are keys of metadata, and need not be
 * named. Other servers have none of them.
 */
export const extension = {
  cursor: 'urn:rivulet:a2a:cursor:1',
  agents: 'urn:rivulet:a2a:agents:1',
  question: 'urn:rivulet:a2a:question:1',
  citation: 'urn:rivulet:a2a:citation:1',
  step: 'urn:rivulet:a2a:step:1',
  error: 'urn:rivulet:a2a:error:1',
  interrupted: 'urn:rivulet:a2a:interrupted:1',
  cutOff: 'urn:rivulet:a2a:cut-off:1',
} as const;
